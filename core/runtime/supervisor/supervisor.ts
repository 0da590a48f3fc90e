import { type CallContext, StartFailed, type SvcError, systemContext } from '@svc/core'
import type { OperatorAnswerPart, OperatorRequest } from '@svc/core/contracts'
import { type PluginBlame, type BlamedEvent, createBlame } from './blame.ts'
import { Connections, type WaitLimits } from './connections.ts'
import { createRestartPolicy, type RestartPolicy } from './restart-policy.ts'
import { crashLoop, notRunning, workerEnded, workerShortLived } from './errors.ts'
import {
  drainAll,
  GenerationMemory,
  infoOf,
  isMissed,
  killWorker,
  retire,
  servedMs,
  type SpawnOptions,
  spawnWorker,
  waitForDrainSlot,
  watchHeartbeats,
  type WorkerHandle,
  type WorkerInfo,
} from './worker-handle.ts'
import { SupervisorPeerHub } from './peer-hub.ts'
import type { WorkerStart } from './worker-link.ts'

/** Settings from the first report of a generation. The supervisor itself reads no configuration. */
interface SupervisorSettings {
  /** Number of workers. Default 1. */
  readonly count?: number
  /** Milliseconds that the server goes on serving before it stops, while its workers report that they leave. Default 0. */
  readonly leaveMs?: number
  /** Milliseconds that workers drain when the server stops, before they are killed. Default 30,000. */
  readonly drainLimitMs?: number
  /** Milliseconds that requests have to end in replaced workers, which are killed somewhat later. Default 30,000. */
  readonly swapLimitMs?: number
  /** Milliseconds without a heartbeat after which a worker is killed. Default 10,000. */
  readonly hangLimitMs?: number
  /** Additional environment of later workers. */
  readonly env?: NodeJS.ProcessEnv
  /** Plain data for later workers of this generation, so that they match the first one even if files have changed. */
  readonly inherited?: unknown
}

export interface SupervisorOptions<R> extends SpawnOptions, WaitLimits {
  /** The name of the server, with which the names of its workers begin: `<name>.<number>`. Default: `server`. */
  readonly name?: string
  /**
   * Milliseconds that the first worker of a new generation must live before it replaces the old ones, because work that a
   * plugin starts in its setup can end it. It gets no connections meanwhile. Default 1,000.
   */
  readonly trialMs?: number
  /** A private folder for the traces of workers. Without it, no plugin is blamed for the end of a worker. */
  readonly traceFolder?: string
  readonly restartPolicy?: RestartPolicy
  settings?(report: R): SupervisorSettings
  onEvent?(event: SupervisorEvent<R>): void
}

export type SupervisorEvent<R> =
  | { readonly event: 'ready'; readonly worker: WorkerInfo; readonly report: R }
  | { readonly event: 'failed'; readonly worker: WorkerInfo; readonly problems: readonly SvcError[] }
  | { readonly event: 'exited'; readonly worker: WorkerInfo; readonly how: string }
  | { readonly event: 'hung'; readonly worker: WorkerInfo; readonly limitMs: number }
  | BlamedEvent
  | { readonly event: 'replacing'; readonly delayMs: number }
  /** Connections were closed because no worker took them in time, or too many waited. At most once a second. */
  | { readonly event: 'unserved'; readonly count: number }
  /** Workers die in a row while others serve. The supervisor keeps trying. */
  | { readonly event: 'looping'; readonly deaths: number; readonly how: string; readonly delayMs: number }

/**
 * `starting` → `running` or `failed`; `running` → `failed` by a crash loop; each → `stopping` → `stopped`. A running host never
 * changes: new code means new workers.
 */
type SupervisorState<R> =
  | { readonly state: 'starting' }
  | { readonly state: 'running'; readonly report: R; readonly settings: SupervisorSettings }
  | { readonly state: 'failed'; readonly problems: readonly SvcError[] }
  | { readonly state: 'stopping' }
  | { readonly state: 'stopped' }

/** Result of a successful reload. */
export interface ReloadOutcome<R> {
  readonly report: R
  /** Serving workers and draining ones. */
  readonly workers: readonly WorkerInfo[]
}

export interface Supervisor<R> extends AsyncDisposable {
  readonly state: SupervisorState<R>
  readonly workers: readonly WorkerInfo[]
  /** Resolves to the crash loop's error when the supervisor gives up. */
  readonly gaveUp: Promise<SvcError>
  /** Starts the first worker and then the others. Resolves to its report. Throws START_FAILED with its problems. */
  start(): Promise<R>
  /**
   * Starts workers from the current files and drains the old ones when the new ones are ready. Throws START_FAILED with all
   * problems; the old ones then keep serving. Reloads run one after the other, and wait while two generations drain. The first
   * new worker gets the reason, for its log.
   */
  reload(reason?: string): Promise<ReloadOutcome<R>>
  /**
   * Drains all workers, does the work while none runs (connections are refused), and starts workers from the current files.
   * Throws START_FAILED when they cannot start; the supervisor has then given up.
   */
  pause(work: () => Promise<void>, reason?: string): Promise<ReloadOutcome<R>>
  /** Asks a worker of the newest generation that serves; see `Control.ask`. */
  ask(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown>
  /** Sends a request of the operator to such a worker, as the principal `system`; see `Control.request`. */
  request(request: OperatorRequest, ctx: CallContext): AsyncIterable<OperatorAnswerPart>
  /**
   * Drains the workers, after they have served on for `leaveMs` (default: that of the settings), and kills them at the limit or at
   * the second call. Resolves when the last one has exited.
   */
  stop(leaveMs?: number): Promise<void>
}

const [LIMIT_MS, HANG_MS, FAILED_EXIT_MS, TRIAL_MS, FORK_AGAIN_MS] = [30_000, 10_000, 2_000, 1_000, 1_000]

/**
 * Owns the listening sockets, sends connections to workers and switches between their generations. It loads no plugin, reads no
 * configuration and writes no output. One per process.
 */
export function createSupervisor<R>(options: SupervisorOptions<R>): Supervisor<R> {
  return new WorkerPool(options)
}

class WorkerPool<R> implements Supervisor<R> {
  readonly #options: SupervisorOptions<R>
  readonly #members = new Set<WorkerHandle<R>>()
  readonly #hub = new SupervisorPeerHub()
  readonly #memory = new GenerationMemory()
  readonly #connections: Connections
  readonly #judge: ReturnType<typeof createRestartPolicy>
  readonly #blame: PluginBlame
  readonly #started = Promise.withResolvers<R>()
  readonly #gaveUp = Promise.withResolvers<SvcError>()
  readonly #gone = Promise.withResolvers<void>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #state: SupervisorState<R> = { state: 'starting' }
  #generation = 0
  #spawned = 0
  #turn: Promise<unknown> = Promise.resolve()
  #waiting: Promise<ReloadOutcome<R>> | undefined
  #endBeats = () => {}

  constructor(options: SupervisorOptions<R>) {
    this.#options = options
    this.#connections = new Connections({ ...options, onClosed: count => this.#emit({ event: 'unserved', count }) })
    this.#judge = createRestartPolicy(options.restartPolicy)
    this.#blame = createBlame(options.traceFolder, this.#hub, event => this.#emit(event))
    // A program that did not call start reads the failure from the state.
    this.#started.promise.catch(() => {})
  }

  get state() {
    return this.#state
  }

  get workers() {
    return [...this.#members].map(infoOf)
  }

  get gaveUp() {
    return this.#gaveUp.promise
  }

  ask(topic: string, message: unknown, ctx: CallContext): AsyncIterable<unknown> {
    return this.#hub.askNewest(topic, message, ctx)
  }

  request(request: OperatorRequest, ctx: CallContext): AsyncIterable<OperatorAnswerPart> {
    return this.#hub.operateNewest(request, systemContext(ctx.signal, ctx.requestId))
  }

  start(): Promise<R> {
    if (this.#state.state === 'starting' && this.#members.size === 0) this.#bringUp(0)
    return this.#started.promise
  }

  reload(reason = ''): Promise<ReloadOutcome<R>> {
    // A waiting reload reads the files when its turn comes, so all callers until then share it.
    this.#waiting ??= this.#turn.then(() => this.#swap(reason))
    this.#turn = this.#waiting.catch(() => {})
    return this.#waiting
  }

  pause(work: () => Promise<void>, reason = ''): Promise<ReloadOutcome<R>> {
    const resumed = this.#turn.then(() => this.#pauseFor(work, reason))
    this.#turn = resumed.catch(() => {})
    return resumed
  }

  stop(leaveMs = this.#settings.leaveMs ?? 0): Promise<void> {
    if (this.#state.state === 'stopping') this.#members.forEach(killWorker)
    if (this.#state.state === 'stopping' || this.#state.state === 'stopped') return this.#gone.promise
    const limitMs = this.#settings.drainLimitMs ?? LIMIT_MS
    this.#state = { state: 'stopping' }
    if (leaveMs <= 0 || this.#members.size === 0) this.#drain(limitMs)
    else {
      for (const { control, channel } of this.#members) void control.leave(systemContext(channel.signal)).catch(() => {})
      this.#later(leaveMs, () => this.#drain(limitMs))
    }
    return this.#gone.promise
  }

  #drain(limitMs: number): void {
    this.#connections.close()
    if (this.#members.size === 0) this.#finish()
    void drainAll([...this.#members], this.#connections, limitMs)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  get #settings(): SupervisorSettings {
    return this.#state.state === 'running' ? this.#state.settings : {}
  }

  async #swap(reason: string): Promise<ReloadOutcome<R>> {
    this.#waiting = undefined
    await waitForDrainSlot(this.#members)
    this.#mustRun()
    const { swapLimitMs = LIMIT_MS } = this.#settings
    const { trialMs = TRIAL_MS } = this.#options
    this.#memory.forget(this.#generation + 1)
    const leader = this.#startLeader({ kind: 'reload', reason })
    await leader.up.promise
    await Promise.race([leader.gone.promise, new Promise<void>(resolve => this.#later(trialMs, resolve))])
    this.#mustRun()
    if (!this.#members.has(leader)) throw new StartFailed([workerShortLived(trialMs)])
    const reloaded = await this.#followLeader(leader)
    const old = [...this.#members].filter(member => member.generation < this.#generation)
    await Promise.all(old.map(member => retire(member, this.#connections, swapLimitMs)))
    return { ...reloaded, workers: this.workers }
  }

  /** Starts the first worker of the next generation. */
  #startLeader(start: WorkerStart): WorkerHandle<R> {
    const leader = this.#bringUp(this.#generation + 1, start)
    leader.trial = true
    return leader
  }

  /** Starts the others when the first one serves. From here on, failing workers are replaced as usual. */
  async #followLeader(leader: WorkerHandle<R>): Promise<ReloadOutcome<R>> {
    const report = await leader.up.promise
    leader.trial = false
    this.#generation = leader.generation
    this.#memory.startAt(leader.generation)
    this.#run(report)
    this.#connections.serve(leader.process)
    this.#connections.keep(leader.process)
    await Promise.allSettled(this.#bringUpOthers().map(member => member.up.promise))
    return { report, workers: this.workers }
  }

  async #pauseFor(work: () => Promise<void>, reason: string): Promise<ReloadOutcome<R>> {
    this.#mustRun()
    const before = this.#generation++ // workers that have died before are not replaced
    this.#connections.close()
    await drainAll([...this.#members], this.#connections, this.#settings.drainLimitMs ?? LIMIT_MS)
    await work()
    this.#mustRun()
    this.#memory.passOn(before, this.#generation + 1)
    const leader = this.#startLeader({ kind: 'resume', reason })
    leader.up.promise.catch(problem => this.#giveUp(problem))
    return this.#followLeader(leader)
  }

  #mustRun() {
    if (this.#state.state !== 'running') throw notRunning(this.#state.state)
  }

  #bringUp(generation: number, start?: WorkerStart): WorkerHandle<R> {
    const isSuccessor = this.#state.state === 'running' && generation === this.#generation
    const { env, inherited } = this.#settings
    const member = spawnWorker<R>(this.#options, {
      name: `${this.#options.name ?? 'server'}.${++this.#spawned}`,
      hub: this.#hub,
      connections: this.#connections,
      generation,
      env,
      inherited: isSuccessor ? inherited : undefined,
      start: start ?? { kind: isSuccessor ? 'worker' : 'server' },
      memory: this.#memory,
      trace: this.#blame.newTrace(),
      excluded: this.#blame.excluded(generation),
      onReady: this.#onReady,
      onFailed: this.#onFailed,
      onExit: this.#onExit,
    })
    this.#members.add(member)
    return member
  }

  #bringUpOthers(): WorkerHandle<R>[] {
    return Array.from({ length: (this.#settings.count ?? 1) - 1 }, () => this.#bringUp(this.#generation))
  }

  readonly #onReady = (member: WorkerHandle<R>, report: R) => {
    if (member.state !== 'starting') return
    clearTimeout(member.timer)
    member.state = 'ready'
    member.readyAt = performance.now()
    if (!member.trial) this.#connections.serve(member.process)
    this.#emit({ event: 'ready', worker: infoOf(member), report })
    member.up.resolve(report)
    if (this.#state.state !== 'starting') return
    this.#run(report)
    this.#started.resolve(report)
    this.#bringUpOthers()
  }

  #run(report: R) {
    const settings = this.#options.settings?.(report) ?? {}
    this.#state = { state: 'running', report, settings }
    const limitMs = settings.hangLimitMs ?? HANG_MS
    this.#endBeats()
    this.#endBeats = watchHeartbeats(
      limitMs,
      () => [...this.#members].filter(member => member.readyAt !== undefined),
      member => member.control.beat(systemContext(member.channel.signal)),
      member => {
        this.#emit({ event: 'hung', worker: infoOf(member), limitMs })
        killWorker(member)
      }
    )
  }

  readonly #onFailed = (member: WorkerHandle<R>, problems: readonly SvcError[]) => {
    member.problems = problems
    clearTimeout(member.timer)
    // The worker exits on its own once its log is written.
    member.timer = setTimeout(() => killWorker(member), FAILED_EXIT_MS)
    this.#emit({ event: 'failed', worker: infoOf(member), problems })
  }

  readonly #onExit = (member: WorkerHandle<R>, how: string) => {
    this.#members.delete(member)
    clearTimeout(member.timer)
    member.channel.close()
    this.#emit({ event: 'exited', worker: infoOf(member), how })
    const culprit = this.#blame.judge(member, how)
    const problems = culprit || !member.problems ? [...(member.problems ?? []), workerEnded(how, culprit)] : member.problems
    member.up.reject(new StartFailed(problems))
    member.gone.resolve()
    if (this.#state.state === 'starting') this.#fail(problems)
    else if (this.#state.state === 'running' && isMissed(member, this.#generation))
      this.#replace(member, how, !!culprit || member.process.pid === undefined) // a worker that was not forked did not crash
    else if (this.#state.state === 'stopping' && this.#members.size === 0) this.#finish()
  }

  #replace(member: WorkerHandle<R>, how: string, isBlamed: boolean) {
    const [others, workers] = [[...this.#members].map(servedMs), this.#settings.count ?? 1]
    const { delayMs, deaths, isLoop, isHopeless } = this.#judge({ ms: servedMs(member), others, workers, isBlamed })
    if (isHopeless) return this.#giveUp(crashLoop(deaths, how))
    if (isLoop) this.#emit({ event: 'looping', deaths, how, delayMs })
    this.#emit({ event: 'replacing', delayMs })
    const { generation } = member
    const bringUp = () => {
      if (this.#state.state !== 'running' || generation !== this.#generation) return
      try {
        this.#bringUp(generation)
      } catch {
        // An error of fork, such as lack of memory, can be temporary.
        this.#emit({ event: 'replacing', delayMs: FORK_AGAIN_MS })
        this.#later(FORK_AGAIN_MS, bringUp)
      }
    }
    if (delayMs === 0) bringUp()
    else this.#later(delayMs, bringUp)
  }

  #later(ms: number, work: () => unknown) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, ms)
    this.#timers.add(timer)
  }

  #giveUp(problem: SvcError) {
    this.#state = { state: 'failed', problems: [problem] }
    this.#gaveUp.resolve(problem)
  }

  #fail(problems: readonly SvcError[]) {
    this.#state = { state: 'failed', problems }
    this.#started.reject(new StartFailed(problems))
  }

  #finish() {
    this.#connections.close()
    this.#endBeats()
    for (const timer of this.#timers) clearTimeout(timer)
    this.#state = { state: 'stopped' }
    this.#started.reject(workerEnded('it was stopped'))
    this.#gone.resolve()
  }

  #emit(event: SupervisorEvent<R>) {
    this.#options.onEvent?.(event)
  }
}
