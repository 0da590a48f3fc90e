import { codeOf, messageOf, type MethodKind, type Scope, type PluginProcessStatus, systemContext } from '@svc/core'
import type { Isolation, IsolationUsage, IsolationRequest, PreparedProcess, RefusalKind } from '@svc/core/contracts'
import { contractMismatch } from '@svc/core/internal'
import { createBackoff } from '../supervisor/restart-policy.ts'
import { pluginGone } from '../processes/errors.ts'
import { PluginRunner } from './contract.ts'
import { filesChanging } from './errors.ts'
import { exposeContributions, type Method } from './host-bridge.ts'
import { type IsolatedProcess, startProcess } from './isolated-process.ts'
import { CLOSE_MS, type Isolated, requestFor, START_MS } from './isolated-ref.ts'
import { createOutputLimiter } from './output-limiter.ts'

type Limits = Pick<PreparedProcess, 'restarts' | 'windowMs' | 'hold'>
const NONE: IsolationUsage = { cpuMs: 0, memoryBytes: 0, refusals: {} }
const MESSAGES = {
  restarting: 'the process of an isolated plugin has ended',
  quarantined: 'the process of an isolated plugin has ended too often: it is brought up no more until the server is reloaded',
  excluded: 'an isolated plugin is kept out: it is started no more until the server is reloaded',
} as const
const ELSEWHERE = 'it has ended too often in another worker, or has ended workers by what it sent'
const EXCLUDED_BECAUSE = 'it has ended or blocked workers by what it sent'

/** A method of a service whose process was never started. */
const rejecting = (kind: MethodKind, gone: Error): Method =>
  kind === 'call' ? () => Promise.reject(gone) : () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(gone) }) })

/** One set-up of an isolated plugin: brings its process up, and up again after its death, until it has died too often. */
export class IsolatedInstance {
  readonly #plugin: Isolated
  readonly #scope: Scope
  readonly #given: Record<string, unknown>
  readonly #isolation: Isolation
  readonly #request: IsolationRequest
  readonly #backoff = createBackoff()
  readonly #budget = createOutputLimiter(lines => this.#scope.log.warn({ lines }, 'it wrote too much: lines were left out'))
  #deaths: number[] = []
  #restarts = 0
  #cpuBefore = 0
  #state: PluginProcessStatus['state'] = 'running'
  #hold: PluginProcessStatus['hold'] = 'nothing'
  #metrics = NONE
  #timer: NodeJS.Timeout | undefined
  #running: IsolatedProcess | undefined
  #service: Record<string, Method> = {}

  constructor(plugin: Isolated, scope: Scope, given: Record<string, unknown>, isolation: Isolation) {
    this.#plugin = plugin
    this.#scope = scope
    this.#given = given
    this.#isolation = isolation
    // what its permissions stand for a person has written: defaults are the plugin's own words, and would grant it what it likes
    const config = { section: plugin.section ?? '', value: plugin.config ? plugin.config.written(scope.config) : scope.config }
    const instance = scope.instance === undefined ? {} : { instance: scope.instance }
    this.#request = { ...requestFor(plugin.ref, plugin.options), ...instance, config }
  }

  /** Sets the plugin up over there; answers with its service, which goes on under the same stub. */
  async setUp(): Promise<unknown> {
    // Before it begins: a setup that never ends is closed too.
    this.#scope.defer(() => this.#close())
    if (this.#isExcluded()) this.#skipStart()
    else await this.#begin()
    void this.#watchQuarantine()
    const methods = Object.keys(this.#service)
    const stub = (name: string): Method => {
      return (...args) => this.#service[name]!(...args)
    }
    return this.#plugin.provides && Object.fromEntries(methods.map(name => [name, stub(name)]))
  }

  processStatus(): PluginProcessStatus {
    const { cpuMs, memoryBytes, refusals } = this.#metrics
    return {
      state: this.#state,
      hold: this.#hold,
      ...(this.#running?.pid === undefined ? {} : { pid: this.#running.pid }),
      restarts: this.#restarts,
      refusals,
      cpuMs: this.#cpuBefore + cpuMs,
      memoryBytes,
    }
  }

  async #begin(deadline?: number): Promise<void> {
    const { verify } = this.#plugin.options
    const files = await verify?.()
    const process = await this.#start()
    const { channel, prepared, ended } = process
    const look = oneAtATime(() => this.#look(process))
    const beats = startHeartbeat(process, look)
    const refused = async (kind: RefusalKind, what: string) => {
      await this.#isolation.refused(prepared.id, { kind, what }, systemContext(this.#scope.signal))
      await look()
    }
    try {
      // What runs in one turn of its loop would begin before it has answered: what hangs from the start must be told from what starts slowly.
      await beats.alive
      const far = { channel, budget: this.#budget, refused, ...(deadline === undefined ? {} : { deadline }) }
      this.#service = this.#checked(await exposeContributions(this.#plugin, this.#scope, this.#given, far))
      // written while they were read: nobody knows what was loaded
      if ((await verify?.()) !== files) throw filesChanging(this.#plugin.ref.name)
    } catch (error) {
      beats.end()
      await process.end()
      throw codeOf(error) === 'PLUGIN_GONE' ? pluginGone(this.#plugin.ref.name, await ended) : error
    }
    if (!this.#isQuarantined()) this.#state = 'running'
    void ended.then(how => {
      beats.end()
      this.#died(how, prepared)
    })
  }

  /** Others hold its service since it first had one: it may not have less after a death. Throws CONTRACT_MISMATCH. */
  #checked(service: Record<string, Method>): Record<string, Method> {
    const missing = Object.keys(this.#service).filter(method => !Object.hasOwn(service, method))
    if (missing.length === 0) return service
    const { ref, provides } = this.#plugin
    throw contractMismatch(ref.name, provides?.name ?? '', `it has no ${missing.join(', ')} any more`)
  }

  async #start(): Promise<IsolatedProcess> {
    const { log, signal } = this.#scope
    const process = await startProcess(this.#isolation, this.#request, systemContext(signal), {
      closeLimitMs: this.#plugin.options.closeLimitMs ?? CLOSE_MS,
      onError: (error, where) => log.error({ err: error, where }, 'failed for an isolated plugin'),
      onOutput: (stream, name) =>
        this.#budget.read(stream, line => log[name === 'stdout' ? 'info' : 'warn']({ from: name }, line)),
    })
    this.#running = process
    this.#hold = process.prepared.hold
    if (signal.aborted || this.#isQuarantined()) await process.end()
    return process
  }

  async #look(process: IsolatedProcess): Promise<void> {
    const { prepared, pid, channel } = process
    const metrics = await this.#isolation.look(prepared.id, pid ?? 0, systemContext(channel.signal))
    // What comes after its death is counted already.
    if (this.#running === process) this.#metrics = metrics
  }

  #died(how: string, limits: Limits): void {
    this.#running = undefined
    this.#cpuBefore += this.#metrics.cpuMs
    this.#metrics = { ...this.#metrics, cpuMs: 0, memoryBytes: 0 }
    if (this.#scope.signal.aborted) return
    const now = Date.now()
    this.#deaths = [...this.#deaths.filter(at => now - at < limits.windowMs), now]
    const delayMs = this.#isQuarantined() || this.#deaths.length > limits.restarts ? undefined : this.#backoff()
    if (delayMs === undefined && !this.#isQuarantined()) this.#announceQuarantine()
    this.#state = delayMs === undefined ? 'quarantined' : 'restarting'
    this.#scope.log.error({ how, delayMs }, MESSAGES[this.#state])
    this.#plugin.options.onGone?.(how, delayMs)
    if (delayMs !== undefined) this.#timer = setTimeout(() => void this.#restart(limits), delayMs)
  }

  #isExcluded(): boolean {
    const { plugin, instance } = this.#request
    return this.#plugin.options.excluded?.some(one => one.plugin === plugin && one.instance === instance) ?? false
  }

  /** Nothing of it is started; the service that it would provide is gone from the first call on. */
  #skipStart(): void {
    this.#state = 'quarantined'
    this.#scope.log.error({ how: EXCLUDED_BECAUSE }, MESSAGES.excluded)
    const gone = pluginGone(this.#plugin.ref.name, EXCLUDED_BECAUSE)
    const methods = Object.entries(this.#plugin.provides?.methods ?? {})
    this.#service = Object.fromEntries(methods.map(([name, kind]) => [name, rejecting(kind, gone)]))
  }

  readonly #isQuarantined = () => this.#state === 'quarantined'

  /** Other workers serve the same: what one of them keeps out all of them do. */
  #announceQuarantine(): void {
    const { log, signal } = this.#scope
    const told = this.#isolation.quarantine(this.#request, systemContext(signal))
    told.catch((err: unknown) => log.warn({ err }, 'not all workers know that it is brought up no more'))
  }

  /** Another worker may be the first to find that it dies too often. */
  async #watchQuarantine(): Promise<void> {
    const { log, signal } = this.#scope
    try {
      for await (const _ of this.#isolation.quarantined(this.#request, systemContext(signal))) this.#quarantine()
    } catch (err) {
      log.warn({ err }, 'what other workers say of it is not heard any more')
    }
  }

  #quarantine(): void {
    if (this.#isQuarantined() || this.#scope.signal.aborted) return
    clearTimeout(this.#timer)
    this.#state = 'quarantined'
    // its death is told like any other; one that waits to be brought up again has died already
    if (this.#running) this.#running.kill(ELSEWHERE)
    else this.#scope.log.error({ how: ELSEWHERE }, MESSAGES.quarantined)
  }

  async #restart(limits: Limits): Promise<void> {
    const { startLimitMs = START_MS, onBack } = this.#plugin.options
    this.#restarts++
    try {
      await this.#begin(Date.now() + startLimitMs)
      onBack?.()
    } catch (error) {
      this.#died(messageOf(error), limits)
    }
  }

  async #close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#running?.end()
    this.#budget[Symbol.dispose]()
  }
}

/** Looks without an answer after which it hangs: one alone may be this process's own fault. */
const LOOKS = 4
const LONGEST_MS = 2500
/** Milliseconds that a process may take until it answers at all. */
const FIRST_MS = 20_000

interface Heartbeat {
  /** Resolves once the process has answered at all. */
  readonly alive: Promise<void>
  end(): void
}

/** Asks a process again and again whether its loop goes on, and kills it when it has not for so long; `look` is for figures. */
function startHeartbeat({ channel, prepared, kill }: IsolatedProcess, look: () => Promise<void>): Heartbeat {
  const { hangMs } = prepared
  const runner = channel.reach('plugin_runner', PluginRunner)
  const everyMs = Math.min(LONGEST_MS, hangMs / LOOKS)
  let limitMs = Math.max(FIRST_MS, hangMs)
  let missed = 1
  const ask = async () => {
    await runner.beat(systemContext(channel.signal))
    missed = 0
    limitMs = hangMs
  }
  const onTick = () => {
    if (missed++ * everyMs >= limitMs) return kill(`it hangs: no answer for ${limitMs} ms`)
    // What fails here is a process that ends, which is told elsewhere.
    look().catch(() => {})
    if (missed === 1) ask().catch(() => {})
  }
  const alive = ask()
  const timer = setInterval(onTick, everyMs).unref()
  return { alive, end: () => clearInterval(timer) }
}

/** Work of which one runs at a time: whoever asks while it runs gets the next one, which is the same for all of them. */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const begin = () => {
    running = work().finally(() => (running = undefined))
    return running
  }
  const after = async (one: Promise<void>) => {
    await one.catch(() => {}) // whoever asked for it is told
    next = undefined
    await begin()
  }
  return () => (running ? (next ??= after(running)) : begin())
}
