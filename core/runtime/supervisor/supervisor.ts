import { StartFailed, type SvcError, systemContext } from '@svc/core'
import { type PluginBlame, type BlamedEvent, createBlame } from './blame.ts'
import { Connections, type WaitLimits } from './connections.ts'
import { createRestartPolicy, type RestartPolicy } from './restart-policy.ts'
import { crashLoop, notRunning, workerEnded, workerShortLived } from './errors.ts'
import {
  drainAll,
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

/** What the supervisor takes from a generation's first report: it reads no configuration itself. */
interface SupervisorSettings {
  /** How many workers run. Default 1. */
  readonly count?: number
  /** Milliseconds that draining workers have when the server ends, before they are killed. Default 30,000. */
  readonly drainLimitMs?: number
  /** Milliseconds that requests have to end in workers that were replaced; they are killed somewhat later. Default 30,000. */
  readonly swapLimitMs?: number
  /** Milliseconds without a sign of life after which a worker is killed. Default 10,000. */
  readonly hangLimitMs?: number
  /** More environment for the workers that come later. */
  readonly env?: NodeJS.ProcessEnv
  /** Plain data for the workers that come later in this generation, so that they are like their first whatever has happened to the disk meanwhile. */
  readonly inherited?: unknown
}

export interface SupervisorOptions<R> extends SpawnOptions, WaitLimits {
  /** Milliseconds that the first of the next generation must live before anybody leaves for it: what a plugin begins in its setup may end it right after. It gets no connections meanwhile. Default 1,000. */
  readonly trialMs?: number
  /** A folder of the user's own, in which workers leave the trace of what they handled when they ended: without it no plugin is blamed for that. */
  readonly traceFolder?: string
  /** With workers that die. */
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
  /** Workers die in a row, and others serve: it goes on trying. */
  | { readonly event: 'looping'; readonly deaths: number; readonly how: string; readonly delayMs: number }

/** `starting` → `running` or `failed`; `running` → `failed` by a crash loop; each → `stopping` → `stopped`. A running host never changes: new code means new workers. */
type SupervisorState<R> =
  | { readonly state: 'starting' }
  | { readonly state: 'running'; readonly report: R; readonly settings: SupervisorSettings }
  | { readonly state: 'failed'; readonly problems: readonly SvcError[] }
  | { readonly state: 'stopping' }
  | { readonly state: 'stopped' }

/** What a reload has done. */
export interface ReloadOutcome<R> {
  readonly report: R
  /** Those that serve now, and those that end what they had begun. */
  readonly workers: readonly WorkerInfo[]
}

export interface Supervisor<R> extends AsyncDisposable {
  readonly state: SupervisorState<R>
  readonly workers: readonly WorkerInfo[]
  /** Settles when it gave up: with the crash loop's error. */
  readonly gaveUp: Promise<SvcError>
  /** Brings up the first worker and, by its settings, the others; answers with its report. Throws START_FAILED with its problems. */
  start(): Promise<R>
  /**
   * Brings up the next workers from what is on disk now; when they are ready, lets the old ones drain. Throws START_FAILED with all problems: then the old
   * ones serve on. One after the other; waits while two generations drain.
   */
  reload(): Promise<ReloadOutcome<R>>
  /**
   * Lets all workers drain, does the work while there is none (connections are refused meanwhile), and brings up the next ones from what is on disk then.
   * Throws START_FAILED when they cannot start: it has given up then.
   */
  pause(work: () => Promise<void>): Promise<ReloadOutcome<R>>
  /** Lets the workers drain, kills them at the limit or at the second call; resolves when the last has gone. */
  stop(): Promise<void>
}

const [LIMIT_MS, HANG_MS, FAILED_EXIT_MS, TRIAL_MS, FORK_AGAIN_MS] = [30_000, 10_000, 2_000, 1_000, 1_000]

/** Owns the listening sockets, hands connections to workers and switches between their generations; loads no plugin, reads no configuration, writes no console. One a process. */
export function createSupervisor<R>(options: SupervisorOptions<R>): Supervisor<R> {
  return new WorkerPool(options)
}

class WorkerPool<R> implements Supervisor<R> {
  readonly #options: SupervisorOptions<R>
  readonly #members = new Set<WorkerHandle<R>>()
  readonly #hub = new SupervisorPeerHub()
  readonly #connections: Connections
  readonly #judge: ReturnType<typeof createRestartPolicy>
  readonly #blame: PluginBlame
  readonly #started = Promise.withResolvers<R>()
  readonly #gaveUp = Promise.withResolvers<SvcError>()
  readonly #gone = Promise.withResolvers<void>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #state: SupervisorState<R> = { state: 'starting' }
  #generation = 0
  #turn: Promise<unknown> = Promise.resolve()
  #waiting: Promise<ReloadOutcome<R>> | undefined
  #endBeats = () => {}

  constructor(options: SupervisorOptions<R>) {
    this.#options = options
    this.#connections = new Connections({ ...options, onClosed: count => this.#emit({ event: 'unserved', count }) })
    this.#judge = createRestartPolicy(options.restartPolicy)
    this.#blame = createBlame(options.traceFolder, this.#hub, event => this.#emit(event))
    // Whoever did not call start hears of its failure through the state.
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

  start(): Promise<R> {
    if (this.#state.state === 'starting' && this.#members.size === 0) this.#bringUp(0)
    return this.#started.promise
  }

  reload(): Promise<ReloadOutcome<R>> {
    // one that waits reads what is on the disk when its turn comes: it serves all who ask until then
    this.#waiting ??= this.#turn.then(() => this.#swap())
    this.#turn = this.#waiting.catch(() => {})
    return this.#waiting
  }

  pause(work: () => Promise<void>): Promise<ReloadOutcome<R>> {
    const resumed = this.#turn.then(() => this.#pauseFor(work))
    this.#turn = resumed.catch(() => {})
    return resumed
  }

  stop(): Promise<void> {
    if (this.#state.state === 'stopping') this.#members.forEach(killWorker)
    if (this.#state.state === 'stopping' || this.#state.state === 'stopped') return this.#gone.promise
    const limitMs = this.#settings.drainLimitMs ?? LIMIT_MS
    this.#state = { state: 'stopping' }
    this.#connections.close()
    if (this.#members.size === 0) this.#finish()
    void drainAll([...this.#members], this.#connections, limitMs)
    return this.#gone.promise
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  get #settings(): SupervisorSettings {
    return this.#state.state === 'running' ? this.#state.settings : {}
  }

  async #swap(): Promise<ReloadOutcome<R>> {
    this.#waiting = undefined
    await waitForDrainSlot(this.#members)
    this.#mustRun()
    const { swapLimitMs = LIMIT_MS } = this.#settings
    const { trialMs = TRIAL_MS } = this.#options
    const leader = this.#startLeader()
    await leader.up.promise
    await Promise.race([leader.gone.promise, new Promise<void>(resolve => this.#later(trialMs, resolve))])
    this.#mustRun()
    if (!this.#members.has(leader)) throw new StartFailed([workerShortLived(trialMs)])
    const reloaded = await this.#followLeader(leader)
    const old = [...this.#members].filter(member => member.generation < this.#generation)
    await Promise.all(old.map(member => retire(member, this.#connections, swapLimitMs)))
    return { ...reloaded, workers: this.workers }
  }

  /** The first of the next generation. */
  #startLeader(): WorkerHandle<R> {
    const leader = this.#bringUp(this.#generation + 1)
    leader.trial = true
    return leader
  }

  /** It serves: the others follow. What fails from here on is replaced, as ever. */
  async #followLeader(leader: WorkerHandle<R>): Promise<ReloadOutcome<R>> {
    const report = await leader.up.promise
    leader.trial = false
    this.#generation = leader.generation
    this.#run(report)
    this.#connections.serve(leader.process)
    this.#connections.keep(leader.process)
    await Promise.allSettled(this.#bringUpOthers().map(member => member.up.promise))
    return { report, workers: this.workers }
  }

  async #pauseFor(work: () => Promise<void>): Promise<ReloadOutcome<R>> {
    this.#mustRun()
    this.#generation++ // nobody replaces a worker that has died before
    this.#connections.close()
    await drainAll([...this.#members], this.#connections, this.#settings.drainLimitMs ?? LIMIT_MS)
    await work()
    this.#mustRun()
    const leader = this.#startLeader()
    leader.up.promise.catch(problem => this.#giveUp(problem))
    return this.#followLeader(leader)
  }

  #mustRun() {
    if (this.#state.state !== 'running') throw notRunning(this.#state.state)
  }

  #bringUp(generation: number): WorkerHandle<R> {
    const isSuccessor = this.#state.state === 'running' && generation === this.#generation
    const { env, inherited } = this.#settings
    const member = spawnWorker<R>(this.#options, {
      hub: this.#hub,
      connections: this.#connections,
      generation,
      env,
      inherited: isSuccessor ? inherited : undefined,
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
    // It ends by itself once its log is written.
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
      this.#replace(member, how, !!culprit || member.process.pid === undefined) // what was not forked did not crash
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
        // what fork throws, such as want of memory, may be over in a moment
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
