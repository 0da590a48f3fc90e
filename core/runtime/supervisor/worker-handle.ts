import { type ChildProcess, fork } from 'node:child_process'
import { codeOf, messageOf, type SvcError, systemContext } from '@svc/core'
import { type Channel, openChannel } from '../processes/channel.ts'
import { fromWire } from '../processes/errors.ts'
import type { ExcludedPlugin } from '../processes/handling.ts'
import { ipcTransport } from '../processes/wire.ts'
import type { Connections } from './connections.ts'
import { listenLate, workerBlocked, workerSlow } from './errors.ts'
import type { SupervisorPeerHub } from './peer-hub.ts'
import {
  type DrainRequest,
  EXCLUDED,
  NAME,
  START,
  startText,
  SUCCESSOR,
  Supervision,
  TRACE,
  WorkerControl,
  type WorkerStart,
} from './worker-link.ts'

/** One worker, as commands see it. */
export interface WorkerInfo {
  readonly name: string
  readonly pid: number
  readonly state: 'starting' | 'ready' | 'draining'
  /** Increases with each reload. */
  readonly generation: number
  /** Unix time in milliseconds. */
  readonly startedAt: number
}

/** One worker, with the report of its start. */
export interface WorkerHandle<R> extends AnyWorker {
  /** Settles when the worker is ready (with its report) or has failed. */
  readonly up: PromiseWithResolvers<R>
}

/** One worker, whatever its report. */
export interface AnyWorker {
  /** Its name, which no other worker ever has. */
  readonly name: string
  readonly process: ChildProcess
  readonly channel: Channel
  readonly control: WorkerControl
  readonly generation: number
  readonly startedAt: number
  /** The file in which it leaves its trace. */
  readonly trace: string | undefined
  readonly gone: PromiseWithResolvers<void>
  /** The first worker of a reload: when it fails, the reload fails and it is not replaced. */
  trial: boolean
  state: WorkerInfo['state']
  /** `performance.now()` when it was ready. */
  readyAt: number | undefined
  problems: readonly SvcError[] | undefined
  timer: NodeJS.Timeout | undefined
}

/** Milliseconds since it was ready. */
export const servedMs = ({ readyAt }: Pick<AnyWorker, 'readyAt'>): number =>
  readyAt === undefined ? 0 : performance.now() - readyAt

/** Milliseconds that a worker has to close after its requests have ended, before it is killed. */
const CLOSE_MS = 15_000

interface ForkOptions {
  readonly exec: string
  readonly args?: readonly string[]
  readonly execArgv?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}

/** The reason of a reload can be a list of changed files. The environment of a process has a limit. */
const LONGEST_START = 1_000
const START_MS = 120_000
/** Longer than the import of all plugins from a cold and slow disk. */
const BLOCKED_MS = 30_000

export interface SpawnOptions extends ForkOptions {
  /** Milliseconds until a worker must report. Default 120,000. */
  readonly startLimitMs?: number
  /** Milliseconds without a heartbeat after which a starting worker is killed. Default 30,000. */
  readonly blockedLimitMs?: number
}

/** Values that workers keep for later workers of their generation, in the memory of the supervisor only. */
export class GenerationMemory {
  readonly #values = new Map<number, Map<string, unknown>>()
  #oldest = 0

  keep(generation: number, name: string, value: unknown): void {
    if (generation < this.#oldest) return
    const values = this.#values.get(generation) ?? new Map<string, unknown>()
    this.#values.set(generation, values.set(name, value))
  }

  kept(generation: number, name: string): unknown {
    return this.#values.get(generation)?.get(name)
  }

  /** Forgets what earlier generations have kept. */
  startAt(generation: number): void {
    this.#oldest = generation
    for (const old of this.#values.keys()) if (old < generation) this.#values.delete(old)
  }

  /** Passes on what a generation has kept, for a generation that starts when no other serves any more. */
  passOn(generation: number, next: number): void {
    for (const [name, value] of this.#values.get(generation) ?? []) this.keep(next, name, value)
  }

  /** Forgets what a generation has kept that did not start. */
  forget(generation: number): void {
    this.#values.delete(generation)
  }
}

/** Context of a new worker. */
export interface SpawnContext<R> {
  readonly name: string
  readonly hub: SupervisorPeerHub
  readonly connections: Connections
  readonly generation: number
  readonly env: NodeJS.ProcessEnv | undefined
  /** Data of the first worker of the generation. Absent for the first one. */
  readonly inherited: unknown
  readonly start: WorkerStart
  readonly memory: GenerationMemory
  /** The file for its trace, if any. */
  readonly trace: string | undefined
  /** Plugins that it must not start. */
  readonly excluded: readonly ExcludedPlugin[]
  onReady(member: WorkerHandle<R>, report: R): void
  onFailed(member: WorkerHandle<R>, problems: readonly SvcError[]): void
  onExit(member: WorkerHandle<R>, how: string): void
}

/** Forks a worker and serves its channel until it exits. */
export function spawnWorker<R>(options: SpawnOptions, place: SpawnContext<R>): WorkerHandle<R> {
  const { name, hub, connections, generation, inherited, start, memory, trace, excluded } = place
  const { startLimitMs = START_MS, blockedLimitMs = BLOCKED_MS } = options
  const env = {
    ...place.env,
    ...(inherited === undefined ? {} : { [SUCCESSOR]: '1' }),
    [START]: startText(start).slice(0, LONGEST_START),
    [NAME]: name,
    ...(trace === undefined ? {} : { [TRACE]: trace }),
    ...(excluded.length === 0 ? {} : { [EXCLUDED]: JSON.stringify(excluded) }),
  }
  const member = forkWorker<R>(options, env, generation)
  member.channel.offer('supervision', Supervision, {
    ready: async report => place.onReady(member, report as R),
    failed: async problems => place.onFailed(member, problems.map(fromWire)),
    inherited: async () => inherited,
    keep: async (name, value) => memory.keep(generation, name, value),
    kept: async name => memory.kept(generation, name),
    async listen(address) {
      if (member.state !== 'starting') throw listenLate(address.port)
      return connections.listen(member.process, address)
    },
  })
  const leave = hub.peer({ id: name, generation }, member.channel, () => member.state === 'ready')
  const cannot = (problem: SvcError) => {
    place.onFailed(member, [problem])
    killWorker(member)
  }
  member.timer = setTimeout(() => cannot(workerSlow(startLimitMs)), startLimitMs)
  const endBeats = watchHeartbeats(
    blockedLimitMs,
    () => (member.state === 'starting' ? [member] : []),
    () => member.control.beat(systemContext(member.channel.signal)),
    () => cannot(workerBlocked(blockedLimitMs))
  )
  const end = (how: string) => {
    endBeats()
    leave()
    connections.forget(member.process)
    place.onExit(member, how)
  }
  member.process.once('exit', (code, signal) => end(signal ?? `code ${code}`))
  // A process that could not be forked (no descriptor or process left) emits an error and no exit.
  if (member.process.pid === undefined)
    member.process.once('error', error => {
      connections.shed()
      end(`not forked: ${codeOf(error) ?? messageOf(error)}`)
    })
  return member
}

/** The supervisor uses the port of `--inspect`; a worker takes any free one. */
const withOwnDebugPort = (arg: string) => arg.replace(/^(--inspect(?:-brk|-wait)?)(?:=.*)?$/, '$1=0')

function forkWorker<R>(options: ForkOptions, more: NodeJS.ProcessEnv, generation: number): WorkerHandle<R> {
  const { exec, args = [], execArgv = [], env } = options
  const child = fork(exec, args, {
    execArgv: execArgv.map(withOwnDebugPort),
    env: { ...process.env, ...env, ...more },
    serialization: 'advanced',
  })
  // Node would end this process for an error without a listener.
  child.on('error', () => {})
  const channel = openChannel(ipcTransport(child), { name: `worker ${child.pid}`, self: 'supervisor' })
  const up = Promise.withResolvers<R>()
  // Callers that wait get the error; all others get events.
  up.promise.catch(() => {})
  return {
    name: more[NAME] ?? '',
    process: child,
    channel,
    control: channel.reach('worker', WorkerControl),
    generation,
    startedAt: Date.now(),
    trace: more[TRACE],
    up,
    gone: Promise.withResolvers<void>(),
    trial: false,
    state: 'starting',
    readyAt: undefined,
    problems: undefined,
    timer: undefined,
  }
}

/** Stops sending connections to a worker and lets it end its work. Kills it after `killMs`. */
async function drainMember(member: AnyWorker, connections: Connections, request: DrainRequest, killMs: number): Promise<void> {
  const { control, channel } = member
  clearTimeout(member.timer)
  member.timer = setTimeout(() => killWorker(member), killMs)
  member.state = 'draining'
  connections.leave(member.process)
  await control.drain(request, systemContext(channel.signal)).catch(() => killWorker(member))
}

/** Drains all workers and resolves when they have exited. */
export async function drainAll(members: readonly AnyWorker[], connections: Connections, limitMs: number): Promise<void> {
  await Promise.all(members.map(member => drainMember(member, connections, { successor: false }, limitMs)))
  await Promise.all(members.map(member => member.gone.promise))
}

/** Ends a replaced worker: one that has served drains, one that has not is killed. */
export async function retire(member: AnyWorker, connections: Connections, limitMs: number): Promise<void> {
  if (member.state === 'draining') return
  if (member.state === 'ready') return drainMember(member, connections, { successor: true, limitMs }, limitMs + CLOSE_MS)
  member.state = 'draining'
  killWorker(member)
}

/** Maximum number of draining generations when a new one starts. One more drains when it is ready. */
const DRAINING = 1

/** Waits until few enough generations drain. */
export async function waitForDrainSlot(members: ReadonlySet<AnyWorker>): Promise<void> {
  const draining = [...members].filter(member => member.state === 'draining')
  if (new Set(draining.map(member => member.generation)).size <= DRAINING) return
  await Promise.race(draining.map(member => member.gone.promise))
  await waitForDrainSlot(members)
}

export const killWorker = ({ process: child }: AnyWorker): void => void child.kill('SIGKILL')

export const infoOf = ({ name, process: child, state, generation, startedAt }: AnyWorker): WorkerInfo => ({
  name,
  pid: child.pid ?? 0,
  state,
  generation,
  startedAt,
})

/** Whether an exited worker of this generation must be replaced. */
export const isMissed = ({ state, trial, generation }: AnyWorker, current: number): boolean =>
  state !== 'draining' && !trial && generation === current

/** Heartbeats within the limit. They are counted, so that a machine that slept does not kill its workers. */
const LOOKS = 5

interface HeartbeatState {
  misses: number
  waiting: boolean
}

/**
 * Sends five heartbeats within `limitMs` to each of `alive`, and calls `onHang` for one that answered none: its event loop is
 * blocked. Returns a function that stops.
 */
export function watchHeartbeats<M extends object>(
  limitMs: number,
  alive: () => Iterable<M>,
  ask: (member: M) => Promise<unknown>,
  onHang: (member: M) => void
): () => void {
  const beats = new WeakMap<M, HeartbeatState>()
  const look = (member: M) => {
    const beat = beats.get(member) ?? { misses: 0, waiting: false }
    beats.set(member, beat)
    if (!beat.waiting) return send(member, beat)
    if (++beat.misses === LOOKS) onHang(member)
  }
  const send = (member: M, beat: HeartbeatState) => {
    beat.waiting = true
    const heard = () => Object.assign(beat, { misses: 0, waiting: false })
    // A worker that is gone needs no heartbeat.
    ask(member).then(heard, heard)
  }
  const timer = setInterval(() => {
    for (const member of alive()) look(member)
  }, limitMs / LOOKS)
  timer.unref()
  return () => clearInterval(timer)
}
