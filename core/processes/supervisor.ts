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

const FAILED_EXIT_MS = 2000

/**
 * Owns the listening socket (node:cluster) and switches it between workers; loads no plugin, reads no configuration, writes no console. One a process.
 * The socket is shared, not dealt out (SCHED_NONE): with round robin a dead worker would leave connections hanging in this process.
 */
export function createSupervisor<R>(options: SupervisorOptions<R>): Supervisor<R> {
  const members = new Set<Member>()
  const backoff = createBackoff()
  const started = Promise.withResolvers<R>()
  const gone = Promise.withResolvers<void>()
  const timers = new Set<NodeJS.Timeout>()
  let state: SupervisorState<R> = { state: 'starting' }
  const tell = (event: SupervisorEvent<R>) => options.onEvent?.(event)
  const settings = () => (state.state === 'running' ? state.settings : {})
  const later = (ms: number, work: () => void) => timers.add(setTimeout(work, ms))

  const bringUp = () => {
    cluster.schedulingPolicy = cluster.SCHED_NONE
    const { exec, args = [], execArgv = [] } = options
    cluster.setupPrimary({ exec, args: [...args], execArgv: [...execArgv], serialization: 'advanced' })
    const worker = cluster.fork({ ...options.env, ...settings().env })
    const channel = openChannel(ipcTransport(worker.process), { name: `worker ${worker.process.pid}`, self: 'supervisor' })
    const member: Member = { worker, channel, startedAt: Date.now(), state: 'starting', problems: undefined, timer: undefined }
    members.add(member)
    channel.offer('supervision', Supervision, {
      ready: async report => onReady(member, report as R),
      failed: async problems => onFailed(member, problems.map(fromWire)),
    })
    const { startLimitMs = 120_000 } = options
    member.timer = setTimeout(() => giveUp(member, [workerSlow(startLimitMs)]), startLimitMs)
    // Node would end this process for an error that nobody hears.
    worker.on('error', () => {})
    worker.once('exit', (code: number | null, signal: string | null) => onExit(member, `${signal ?? `code ${code}`}`))
  }
  const onReady = (member: Member, report: R) => {
    clearTimeout(member.timer)
    if (member.state === 'starting') member.state = 'ready'
    tell({ event: 'ready', worker: infoOf(member), report })
    if (state.state !== 'starting') return
    state = { state: 'running', report, settings: options.settings?.(report) ?? {} }
    started.resolve(report)
    for (let i = 1; i < (settings().count ?? 1); i++) bringUp()
  }
  const onFailed = (member: Member, problems: readonly SvcError[]) => {
    member.problems = problems
    clearTimeout(member.timer)
    // It ends by itself once its log is written.
    member.timer = setTimeout(() => member.worker.process.kill('SIGKILL'), FAILED_EXIT_MS)
    tell({ event: 'failed', worker: infoOf(member), problems })
  }
  const giveUp = (member: Member, problems: readonly SvcError[]) => {
    onFailed(member, problems)
    member.worker.process.kill('SIGKILL')
  }
  const onExit = (member: Member, how: string) => {
    members.delete(member)
    clearTimeout(member.timer)
    member.channel.close()
    tell({ event: 'exited', worker: infoOf(member), how })
    if (state.state === 'starting') fail(member.problems ?? [workerEnded(how)])
    else if (state.state === 'running' && member.state !== 'draining') replace()
    else if (state.state === 'stopping' && members.size === 0) finish()
  }
  const fail = (problems: readonly SvcError[]) => {
    state = { state: 'failed', problems }
    started.reject(new StartFailed(problems))
  }
  const replace = () => {
    const delayMs = backoff()
    tell({ event: 'replacing', delayMs })
    // With one worker the socket closes with it, so its successor comes at once.
    if (delayMs === 0) bringUp()
    else later(delayMs, () => state.state === 'running' && bringUp())
  }
  const killAll = () => members.forEach(({ worker }) => void worker.process.kill('SIGKILL'))
  const drain = (member: Member) => {
    member.state = 'draining'
    const asked = member.channel.reach('worker', WorkerControl).drain(systemUse(member.channel.signal))
    asked.catch(() => member.worker.process.kill('SIGKILL'))
  }
  const finish = () => {
    timers.forEach(clearTimeout)
    state = { state: 'stopped' }
    started.reject(workerEnded('it was stopped'))
    gone.resolve()
  }
  const stop = () => {
    if (state.state === 'stopping') killAll()
    if (state.state === 'stopping' || state.state === 'stopped') return gone.promise
    const { drainLimitMs = 30_000 } = settings()
    state = { state: 'stopping' }
    if (members.size === 0) finish()
    else later(drainLimitMs, killAll)
    members.forEach(drain)
    return gone.promise
  }
  started.promise.catch(() => {})
  return {
    get state() {
      return state
    },
    get workers() {
      return [...members].map(infoOf)
    },
    start() {
      if (state.state === 'starting' && members.size === 0) bringUp()
      return started.promise
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

const infoOf = ({ worker, state, startedAt }: Member): WorkerInfo => ({ pid: worker.process.pid ?? 0, state, startedAt })
