import cluster, { type Worker } from 'node:cluster'
import { StartFailed, type SvcError } from '../src/errors.ts'
import { systemUse } from '../src/token.ts'
import { createBackoff } from './backoff.ts'
import { type Channel, openChannel } from './channel.ts'
import { fromWire, workerEnded, workerSlow } from './errors.ts'
import { ipcTransport } from './wire.ts'
import { Supervision, WorkerControl } from './worker-link.ts'

/** What the supervisor takes from the first worker's report: it reads no configuration itself. */
export interface SupervisorSettings {
  /** How many workers run. Default 1. */
  readonly count?: number
  /** Milliseconds that draining workers have before they are killed. Default 30,000. */
  readonly drainLimitMs?: number
  /** More environment for the workers that come later, such as the port that the first one found. */
  readonly env?: NodeJS.ProcessEnv
}

export interface SupervisorOptions<R> {
  /** The worker's entry module, its arguments and Node's flags. */
  readonly exec: string
  readonly args?: readonly string[]
  readonly execArgv?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** Milliseconds a worker has until it reports. Default 120,000. */
  readonly startLimitMs?: number
  settings?(report: R): SupervisorSettings
  onEvent?(event: SupervisorEvent<R>): void
}

/** One worker, as commands see it. */
export interface WorkerInfo {
  readonly pid: number
  readonly state: 'starting' | 'ready' | 'draining'
  /** Unix time in milliseconds. */
  readonly startedAt: number
}

export type SupervisorEvent<R> =
  | { readonly event: 'ready'; readonly worker: WorkerInfo; readonly report: R }
  | { readonly event: 'failed'; readonly worker: WorkerInfo; readonly problems: readonly SvcError[] }
  | { readonly event: 'exited'; readonly worker: WorkerInfo; readonly how: string }
  | { readonly event: 'replacing'; readonly delayMs: number }

/** `starting` → `running` or `failed`; each → `stopping` → `stopped`. A running host never changes: new code means new workers. */
export type SupervisorState<R> =
  | { readonly state: 'starting' }
  | { readonly state: 'running'; readonly report: R; readonly settings: SupervisorSettings }
  | { readonly state: 'failed'; readonly problems: readonly SvcError[] }
  | { readonly state: 'stopping' }
  | { readonly state: 'stopped' }

export interface Supervisor<R> extends AsyncDisposable {
  readonly state: SupervisorState<R>
  readonly workers: readonly WorkerInfo[]
  /** Brings up the first worker and, by its settings, the others; answers with its report. Throws START_FAILED with its problems. */
  start(): Promise<R>
  /** Lets the workers drain, kills them at the limit or at the second call; resolves when the last has gone. */
  stop(): Promise<void>
}

interface Member {
  readonly worker: Worker
  readonly channel: Channel
  readonly startedAt: number
  state: WorkerInfo['state']
  problems: readonly SvcError[] | undefined
  timer: NodeJS.Timeout | undefined
}

const START_MS = 120_000
const DRAIN_MS = 30_000
const FAILED_EXIT_MS = 2000

/**
 * Owns the listening socket (node:cluster) and switches it between workers; loads no plugin, reads no configuration, writes no console. One a process.
 * The socket is shared, not dealt out (SCHED_NONE): with round robin a dead worker would leave connections hanging in this process.
 */
export function createSupervisor<R>(options: SupervisorOptions<R>): Supervisor<R> {
  return new Crew(options)
}

class Crew<R> implements Supervisor<R> {
  readonly #options: SupervisorOptions<R>
  readonly #members = new Set<Member>()
  readonly #backoff = createBackoff()
  readonly #started = Promise.withResolvers<R>()
  readonly #gone = Promise.withResolvers<void>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #state: SupervisorState<R> = { state: 'starting' }

  constructor(options: SupervisorOptions<R>) {
    this.#options = options
    // Whoever did not call start hears of its failure through the state.
    this.#started.promise.catch(() => {})
  }

  get state() {
    return this.#state
  }

  get workers() {
    return [...this.#members].map(infoOf)
  }

  start(): Promise<R> {
    if (this.#state.state === 'starting' && this.#members.size === 0) this.#bringUp()
    return this.#started.promise
  }

  stop(): Promise<void> {
    if (this.#state.state === 'stopping') this.#killAll()
    if (this.#state.state === 'stopping' || this.#state.state === 'stopped') return this.#gone.promise
    const { drainLimitMs = DRAIN_MS } = this.#settings
    this.#state = { state: 'stopping' }
    if (this.#members.size === 0) this.#finish()
    else this.#later(drainLimitMs, () => this.#killAll())
    for (const member of this.#members) drain(member)
    return this.#gone.promise
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  get #settings(): SupervisorSettings {
    return this.#state.state === 'running' ? this.#state.settings : {}
  }

  #bringUp() {
    const member = fork(this.#options, this.#settings.env)
    this.#members.add(member)
    member.channel.offer('supervision', Supervision, {
      ready: async report => this.#onReady(member, report as R),
      failed: async problems => this.#onFailed(member, problems.map(fromWire)),
    })
    const { startLimitMs = START_MS } = this.#options
    member.timer = setTimeout(() => {
      this.#onFailed(member, [workerSlow(startLimitMs)])
      kill(member)
    }, startLimitMs)
    member.worker.once('exit', (code: number | null, signal: string | null) => this.#onExit(member, signal ?? `code ${code}`))
  }

  #onReady(member: Member, report: R) {
    clearTimeout(member.timer)
    if (member.state === 'starting') member.state = 'ready'
    this.#tell({ event: 'ready', worker: infoOf(member), report })
    if (this.#state.state !== 'starting') return
    this.#state = { state: 'running', report, settings: this.#options.settings?.(report) ?? {} }
    this.#started.resolve(report)
    for (let i = 1; i < (this.#settings.count ?? 1); i++) this.#bringUp()
  }

  #onFailed(member: Member, problems: readonly SvcError[]) {
    member.problems = problems
    clearTimeout(member.timer)
    // It ends by itself once its log is written.
    member.timer = setTimeout(() => kill(member), FAILED_EXIT_MS)
    this.#tell({ event: 'failed', worker: infoOf(member), problems })
  }

  #onExit(member: Member, how: string) {
    this.#members.delete(member)
    clearTimeout(member.timer)
    member.channel.close()
    this.#tell({ event: 'exited', worker: infoOf(member), how })
    if (this.#state.state === 'starting') this.#fail(member.problems ?? [workerEnded(how)])
    else if (this.#state.state === 'running' && member.state !== 'draining') this.#replace()
    else if (this.#state.state === 'stopping' && this.#members.size === 0) this.#finish()
  }

  #replace() {
    const delayMs = this.#backoff()
    this.#tell({ event: 'replacing', delayMs })
    // With one worker the socket closes with it, so its successor comes at once.
    if (delayMs === 0) this.#bringUp()
    else this.#later(delayMs, () => this.#state.state === 'running' && this.#bringUp())
  }

  #fail(problems: readonly SvcError[]) {
    this.#state = { state: 'failed', problems }
    this.#started.reject(new StartFailed(problems))
  }

  #finish() {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#state = { state: 'stopped' }
    this.#started.reject(workerEnded('it was stopped'))
    this.#gone.resolve()
  }

  #killAll() {
    for (const member of this.#members) kill(member)
  }

  #later(ms: number, work: () => unknown) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, ms)
    this.#timers.add(timer)
  }

  #tell(event: SupervisorEvent<R>) {
    this.#options.onEvent?.(event)
  }
}

function fork<R>({ exec, args = [], execArgv = [], env }: SupervisorOptions<R>, more: NodeJS.ProcessEnv | undefined): Member {
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({ exec, args: [...args], execArgv: [...execArgv], serialization: 'advanced' })
  const worker = cluster.fork({ ...env, ...more })
  // Node would end this process for an error that nobody hears.
  worker.on('error', () => {})
  const channel = openChannel(ipcTransport(worker.process), { name: `worker ${worker.process.pid}`, self: 'supervisor' })
  return { worker, channel, startedAt: Date.now(), state: 'starting', problems: undefined, timer: undefined }
}

function drain(member: Member) {
  member.state = 'draining'
  const asked = member.channel.reach('worker', WorkerControl).drain(systemUse(member.channel.signal))
  asked.catch(() => kill(member))
}

const kill = ({ worker }: Member) => void worker.process.kill('SIGKILL')
const infoOf = ({ worker, state, startedAt }: Member): WorkerInfo => ({ pid: worker.process.pid ?? 0, state, startedAt })
