import { fromWire } from '../processes/errors.ts'
import { StartFailed, type SvcError } from '../src/errors.ts'
import { systemUse } from '../src/token.ts'
import { createDeaths, STABLE_MS } from './deaths.ts'
import { crashLoop, notRunning, workerEnded, workerShortLived, workerSlow } from './errors.ts'
import { watchBeats } from './heartbeat.ts'
import type { Reloaded, Supervisor, SupervisorEvent, SupervisorOptions, SupervisorSettings, SupervisorState } from './crew.ts'
import { createHandoffs } from './handoffs.ts'
import { drainMember, forkMember, infoOf, isMissed, killMember, type Member, retire } from './member.ts'
import { Desk } from './peer-desk.ts'
import { HEIR, Supervision } from './worker-link.ts'

const START_MS = 120_000
const LIMIT_MS = 30_000
const HANG_MS = 10_000
const FAILED_EXIT_MS = 2_000
/** So long must the first of the next generation live before anybody leaves for it: what a plugin begins in its setup may end it right after. */
const PROOF_MS = 1_000
/** So many generations may drain when the next one is begun; one more drains when it is ready. */
const DRAINING = 1

/** Deals connections out to workers (node:cluster) and switches between their generations; loads no plugin, reads no configuration, writes no console. One a process. */
export function createSupervisor<R>(options: SupervisorOptions<R>): Supervisor<R> {
  return new Crew(options)
}

class Crew<R> implements Supervisor<R> {
  readonly #options: SupervisorOptions<R>
  readonly #members = new Set<Member<R>>()
  readonly #desk = new Desk()
  readonly #handoffs = createHandoffs()
  readonly #judge = createDeaths()
  readonly #started = Promise.withResolvers<R>()
  readonly #gaveUp = Promise.withResolvers<SvcError>()
  readonly #gone = Promise.withResolvers<void>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #state: SupervisorState<R> = { state: 'starting' }
  #generation = 0
  #turn: Promise<unknown> = Promise.resolve()
  #waiting: Promise<Reloaded<R>> | undefined
  #endBeats = () => {}

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

  stop(): Promise<void> {
    if (this.#state.state === 'stopping') this.#killAll()
    if (this.#state.state === 'stopping' || this.#state.state === 'stopped') return this.#gone.promise
    const limitMs = this.#settings.drainLimitMs ?? LIMIT_MS
    this.#state = { state: 'stopping' }
    if (this.#members.size === 0) this.#finish()
    const drained = [...this.#members].map(member => drainMember(member, { successor: false }, limitMs))
    void Promise.all(drained).then(() => this.#handoffs.closeRefused())
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
    await this.#room()
    this.#mustRun()
    const { swapLimitMs = LIMIT_MS } = this.#settings
    const leader = this.#bringUp(this.#generation + 1)
    leader.trial = true
    const report = await leader.up.promise
    await Promise.race([leader.gone.promise, new Promise<void>(resolve => this.#later(PROOF_MS, resolve))])
    this.#mustRun()
    if (!this.#members.has(leader)) throw new StartFailed([workerShortLived(PROOF_MS)])
    leader.trial = false
    this.#generation = leader.generation
    this.#run(report)
    // what fails from here on is replaced, as ever
    await Promise.allSettled(this.#bringUpOthers().map(member => member.up.promise))
    const old = [...this.#members].filter(member => member.generation < this.#generation)
    await Promise.all(old.map(member => retire(member, swapLimitMs)))
    return { report, workers: this.workers }
  }

  #mustRun() {
    if (this.#state.state !== 'running') throw notRunning(this.#state.state)
  }

  /** Waits until so few generations drain that one more may. */
  async #room(): Promise<void> {
    const draining = [...this.#members].filter(member => member.state === 'draining')
    if (new Set(draining.map(member => member.generation)).size <= DRAINING) return
    await Promise.race(draining.map(member => member.gone.promise))
    await this.#room()
  }

  #bringUp(generation: number): Member<R> {
    const isHeir = this.#state.state === 'running' && generation === this.#generation
    const env = { ...this.#settings.env, ...(isHeir ? { [HEIR]: '1' } : {}) }
    const member = forkMember<R>(this.#options, env, generation, this.#handoffs)
    this.#members.add(member)
    member.channel.offer('supervision', Supervision, {
      ready: async report => this.#onReady(member, report as R),
      failed: async problems => this.#onFailed(member, problems.map(fromWire)),
      legacy: async () => this.#settings.legacy,
    })
    const leave = this.#desk.seat(member.worker.process.pid ?? 0, member.channel, () => member.state === 'ready')
    const { startLimitMs = START_MS } = this.#options
    member.timer = setTimeout(() => {
      this.#onFailed(member, [workerSlow(startLimitMs)])
      killMember(member)
    }, startLimitMs)
    member.worker.once('exit', (code: number | null, signal: string | null) => {
      this.#members.delete(member)
      leave()
      this.#onExit(member, signal ?? `code ${code}`)
    })
    return member
  }

  #bringUpOthers(): Member<R>[] {
    return Array.from({ length: (this.#settings.count ?? 1) - 1 }, () => this.#bringUp(this.#generation))
  }

  #onReady(member: Member<R>, report: R) {
    if (member.state !== 'starting') return
    clearTimeout(member.timer)
    member.state = 'ready'
    member.readyAt = performance.now()
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

  #onFailed(member: Member<R>, problems: readonly SvcError[]) {
    member.problems = problems
    clearTimeout(member.timer)
    // It ends by itself once its log is written.
    member.timer = setTimeout(() => killMember(member), FAILED_EXIT_MS)
    this.#tell({ event: 'failed', worker: infoOf(member), problems })
  }

  #onExit(member: Member<R>, how: string) {
    clearTimeout(member.timer)
    member.channel.close()
    this.#tell({ event: 'exited', worker: infoOf(member), how })
    const problems = member.problems ?? [workerEnded(how)]
    member.up.reject(new StartFailed(problems))
    member.gone.resolve()
    if (this.#state.state === 'starting') this.#fail(problems)
    else if (this.#state.state === 'running' && isMissed(member, this.#generation)) this.#replace(member, how)
    else if (this.#state.state === 'stopping' && this.#members.size === 0) this.#finish()
  }

  #replace(member: Member<R>, how: string) {
    const servedMs = (at: Member<R>) => (at.readyAt === undefined ? 0 : performance.now() - at.readyAt)
    const { delayMs, deaths, isLoop } = this.#judge(servedMs(member), this.#settings.count ?? 1)
    const someoneServes = [...this.#members].some(other => servedMs(other) >= STABLE_MS)
    if (isLoop && !someoneServes) return this.#giveUp(crashLoop(deaths, how))
    this.#tell({ event: 'replacing', delayMs })
    const { generation } = member
    // With one worker the socket closes with it, so its successor comes at once.
    if (delayMs === 0) this.#bringUp(generation)
    else
      this.#later(delayMs, () => this.#state.state === 'running' && generation === this.#generation && this.#bringUp(generation))
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

  #killAll() {
    for (const member of this.#members) killMember(member)
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
