import { StartFailed, type SvcError } from '../src/errors.ts'
import { systemUse } from '../src/token.ts'
import { type Blame, createBlame } from './blame.ts'
import { createDeaths } from './deaths.ts'
import { crashLoop, notRunning, workerEnded, workerShortLived } from './errors.ts'
import { watchBeats } from './heartbeat.ts'
import type { Reloaded, Supervisor, SupervisorEvent, SupervisorOptions, SupervisorSettings, SupervisorState } from './crew.ts'
import { Connections } from './connections.ts'
import { drainAll, hire, infoOf, isMissed, killMember, type Member, retire, roomFor, servedMs } from './member.ts'
import { Desk } from './peer-desk.ts'
import { createTimers } from './timers.ts'

const [LIMIT_MS, HANG_MS, FAILED_EXIT_MS, PROOF_MS] = [30_000, 10_000, 2_000, 1_000]

/** Owns the listening sockets, hands connections to workers and switches between their generations; loads no plugin, reads no configuration, writes no console. One a process. */
export function createSupervisor<R>(options: SupervisorOptions<R>): Supervisor<R> {
  return new Crew(options)
}

class Crew<R> implements Supervisor<R> {
  readonly #options: SupervisorOptions<R>
  readonly #members = new Set<Member<R>>()
  readonly #desk = new Desk()
  readonly #connections: Connections
  readonly #judge: ReturnType<typeof createDeaths>
  readonly #blame: Blame
  readonly #started = Promise.withResolvers<R>()
  readonly #gaveUp = Promise.withResolvers<SvcError>()
  readonly #gone = Promise.withResolvers<void>()
  readonly #timers = createTimers()
  #state: SupervisorState<R> = { state: 'starting' }
  #generation = 0
  #turn: Promise<unknown> = Promise.resolve()
  #waiting: Promise<Reloaded<R>> | undefined
  #endBeats = () => {}

  constructor(options: SupervisorOptions<R>) {
    this.#options = options
    this.#connections = new Connections({ ...options, onClosed: count => this.#tell({ event: 'unserved', count }) })
    this.#judge = createDeaths(options.patience)
    this.#blame = createBlame(options.traceFolder, this.#desk, event => this.#tell(event))
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

  reload(): Promise<Reloaded<R>> {
    // one that waits reads what is on the disk when its turn comes: it serves all who ask until then
    this.#waiting ??= this.#turn.then(() => this.#swap())
    this.#turn = this.#waiting.catch(() => {})
    return this.#waiting
  }

  pause(work: () => Promise<void>): Promise<Reloaded<R>> {
    const resumed = this.#turn.then(() => this.#without(work))
    this.#turn = resumed.catch(() => {})
    return resumed
  }

  stop(): Promise<void> {
    if (this.#state.state === 'stopping') this.#members.forEach(killMember)
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

  async #swap(): Promise<Reloaded<R>> {
    this.#waiting = undefined
    await roomFor(this.#members)
    this.#mustRun()
    const { swapLimitMs = LIMIT_MS } = this.#settings
    const { proofMs = PROOF_MS } = this.#options
    const leader = this.#lead()
    await leader.up.promise
    await Promise.race([leader.gone.promise, new Promise<void>(resolve => this.#timers.later(proofMs, resolve))])
    this.#mustRun()
    if (!this.#members.has(leader)) throw new StartFailed([workerShortLived(proofMs)])
    const reloaded = await this.#follow(leader)
    const old = [...this.#members].filter(member => member.generation < this.#generation)
    await Promise.all(old.map(member => retire(member, this.#connections, swapLimitMs)))
    return { ...reloaded, workers: this.workers }
  }

  /** The first of the next generation. */
  #lead(): Member<R> {
    const leader = this.#bringUp(this.#generation + 1)
    leader.trial = true
    return leader
  }

  /** It serves: the others follow. What fails from here on is replaced, as ever. */
  async #follow(leader: Member<R>): Promise<Reloaded<R>> {
    const report = await leader.up.promise
    leader.trial = false
    this.#generation = leader.generation
    this.#run(report)
    this.#connections.serve(leader.process)
    this.#connections.keep(leader.process)
    await Promise.allSettled(this.#bringUpOthers().map(member => member.up.promise))
    return { report, workers: this.workers }
  }

  async #without(work: () => Promise<void>): Promise<Reloaded<R>> {
    this.#mustRun()
    this.#generation++ // nobody replaces a worker that has died before
    this.#connections.close()
    await drainAll([...this.#members], this.#connections, this.#settings.drainLimitMs ?? LIMIT_MS)
    await work()
    this.#mustRun()
    const leader = this.#lead()
    leader.up.promise.catch(problem => this.#giveUp(problem))
    return this.#follow(leader)
  }

  #mustRun() {
    if (this.#state.state !== 'running') throw notRunning(this.#state.state)
  }

  #bringUp(generation: number): Member<R> {
    const isHeir = this.#state.state === 'running' && generation === this.#generation
    const { env, legacy } = this.#settings
    const member = hire<R>(this.#options, {
      desk: this.#desk,
      connections: this.#connections,
      generation,
      env,
      legacy: isHeir ? legacy : undefined,
      blame: this.#blame,
      onReady: this.#onReady,
      onFailed: this.#onFailed,
      onExit: this.#onExit,
    })
    this.#members.add(member)
    return member
  }

  #bringUpOthers(): Member<R>[] {
    return Array.from({ length: (this.#settings.count ?? 1) - 1 }, () => this.#bringUp(this.#generation))
  }

  readonly #onReady = (member: Member<R>, report: R) => {
    if (member.state !== 'starting') return
    clearTimeout(member.timer)
    member.state = 'ready'
    member.readyAt = performance.now()
    if (!member.trial) this.#connections.serve(member.process)
    this.#tell({ event: 'ready', worker: infoOf(member), report })
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
    this.#endBeats = watchBeats(
      limitMs,
      () => [...this.#members].filter(member => member.readyAt !== undefined),
      member => member.control.beat(systemUse(member.channel.signal)),
      member => {
        this.#tell({ event: 'hung', worker: infoOf(member), limitMs })
        killMember(member)
      }
    )
  }

  readonly #onFailed = (member: Member<R>, problems: readonly SvcError[]) => {
    member.problems = problems
    clearTimeout(member.timer)
    // It ends by itself once its log is written.
    member.timer = setTimeout(() => killMember(member), FAILED_EXIT_MS)
    this.#tell({ event: 'failed', worker: infoOf(member), problems })
  }

  readonly #onExit = (member: Member<R>, how: string) => {
    this.#members.delete(member)
    clearTimeout(member.timer)
    member.channel.close()
    this.#tell({ event: 'exited', worker: infoOf(member), how })
    const culprit = this.#blame.judge(member, how)
    const problems = culprit || !member.problems ? [...(member.problems ?? []), workerEnded(how, culprit)] : member.problems
    member.up.reject(new StartFailed(problems))
    member.gone.resolve()
    if (this.#state.state === 'starting') this.#fail(problems)
    else if (this.#state.state === 'running' && isMissed(member, this.#generation)) this.#replace(member, how, !!culprit)
    else if (this.#state.state === 'stopping' && this.#members.size === 0) this.#finish()
  }

  #replace(member: Member<R>, how: string, isBlamed: boolean) {
    const [others, workers] = [[...this.#members].map(servedMs), this.#settings.count ?? 1]
    const { delayMs, deaths, isLoop, isHopeless } = this.#judge({ ms: servedMs(member), others, workers, isBlamed })
    if (isHopeless) return this.#giveUp(crashLoop(deaths, how))
    if (isLoop) this.#tell({ event: 'looping', deaths, how, delayMs })
    this.#tell({ event: 'replacing', delayMs })
    const { generation } = member
    const bringUp = () => this.#state.state === 'running' && generation === this.#generation && this.#bringUp(generation)
    if (delayMs === 0) bringUp()
    else this.#timers.later(delayMs, bringUp)
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
    this.#timers.clear()
    this.#state = { state: 'stopped' }
    this.#started.reject(workerEnded('it was stopped'))
    this.#gone.resolve()
  }

  #tell(event: SupervisorEvent<R>) {
    this.#options.onEvent?.(event)
  }
}
