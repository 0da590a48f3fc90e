import { codeOf, messageOf, type MethodKind, type Scope, type PluginProcessStatus, systemContext } from '@svc/core'
import type {
  Isolation,
  IsolationRequest,
  IsolationUsage,
  PreparedProcess,
  QuarantinedName,
  RefusalKind,
} from '@svc/core/contracts'
import { contractMismatch } from '@svc/core/internal'
import { createBackoff } from '../supervisor/restart-policy.ts'
import { pluginGone } from '../processes/errors.ts'
import { PluginRunner, providedToken } from './contract.ts'
import { filesChanging } from './errors.ts'
import { exposeContributions, type Method } from './host-bridge.ts'
import { type IsolatedProcess, type ProcessOptions, startProcess } from './isolated-process.ts'
import { CLOSE_MS, type Isolated, instanceRequest, START_MS } from './isolated-ref.ts'
import { createOutputLimiter } from './output-limiter.ts'

type Limits = Pick<PreparedProcess, 'restarts' | 'windowMs' | 'hold'>
const NONE: IsolationUsage = { cpuMs: 0, memoryBytes: 0, refusals: {} }
const MESSAGES = {
  restarting: 'the process of an isolated plugin has ended',
  quarantined: 'the process of an isolated plugin has ended too often: it is not restarted until a reload',
  excluded: 'an isolated plugin is excluded: it is not started until a reload',
  released: 'an isolated plugin is released from quarantine by a reload of a server: its process starts again',
} as const
const ELSEWHERE = 'it ended too often in another worker, or its messages ended workers'
const EXCLUDED_BECAUSE = 'its messages ended or blocked workers'

/** A method of a service whose process was never started. */
const rejecting = (kind: MethodKind, gone: Error): Method =>
  kind === 'call' ? () => Promise.reject(gone) : () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(gone) }) })

/** One instance of an isolated plugin. It starts the process and restarts it after each death, until it has died too often. */
export class IsolatedInstance {
  readonly #plugin: Isolated
  readonly #scope: Scope
  readonly #given: Record<string, unknown>
  readonly #isolation: Isolation
  readonly #request: IsolationRequest
  readonly #backoff = createBackoff()
  readonly #budget = createOutputLimiter(lines =>
    this.#scope.log.warn({ lines }, 'an isolated plugin wrote too much: lines were dropped')
  )
  #deaths: number[] = []
  #limits: Limits | undefined
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
    this.#request = instanceRequest(plugin, scope.config, scope.instance)
  }

  /** Runs the setup in the process and returns a stub of the service, which survives restarts. */
  async setUp(): Promise<unknown> {
    // Registered first, so that a setup that never ends is closed as well.
    this.#scope.defer(() => this.#close())
    this.#scope.defer(async () => this.#plugin.options.prestarts?.end())
    const excluded = this.#excluded()
    if (excluded) this.#skipStart(excluded)
    else {
      this.#plugin.options.prestarts?.begin(this.#isolation)
      await this.#begin()
    }
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
    this.#limits = prepared
    const look = oneAtATime(() => this.#look(process))
    const beats = startHeartbeat(process, look)
    const refused = async (kind: RefusalKind, what: string) => {
      await this.#isolation.refused(prepared.id, { kind, what }, systemContext(this.#scope.signal))
      await look()
    }
    try {
      // Wait for the first heartbeat: it separates a process that hangs from the start from one that starts slowly.
      await beats.alive
      const far = { channel, budget: this.#budget, refused, ...(deadline === undefined ? {} : { deadline }) }
      this.#service = this.#checked(await exposeContributions(this.#plugin, this.#scope, this.#given, far))
      // The files changed during the load, so it is unknown which version was loaded.
      if ((await verify?.()) !== files) throw filesChanging(this.#plugin.ref.name)
    } catch (error) {
      beats.end()
      await process.end()
      throw codeOf(error) === 'PLUGIN_GONE' ? pluginGone(this.#plugin.ref.name, await ended) : error
    }
    const runner = channel.reach('plugin_runner', PluginRunner)
    this.#plugin.options.watch?.started(() => runner.handles(systemContext(channel.signal)))
    if (!this.#isQuarantined()) this.#state = 'running'
    void ended.then(how => {
      beats.end()
      this.#died(how, prepared)
    })
  }

  /**
   * Other plugins use its service since the first start, so it must keep all methods after a restart. Throws CONTRACT_MISMATCH.
   */
  #checked(service: Record<string, Method>): Record<string, Method> {
    const missing = Object.keys(this.#service).filter(method => !Object.hasOwn(service, method))
    if (missing.length === 0) return service
    const { ref, provides } = this.#plugin
    throw contractMismatch(ref.name, provides?.name ?? '', `it has no ${missing.join(', ')} any more`)
  }

  async #start(): Promise<IsolatedProcess> {
    const { log, signal } = this.#scope
    const { closeLimitMs = CLOSE_MS, prestarts } = this.#plugin.options
    const options: ProcessOptions = {
      closeLimitMs,
      onLeft: left => this.#plugin.options.watch?.left(left),
      onError: (error, where) => log.error({ err: error, where }, 'a call of an isolated plugin failed'),
      onOutput: (stream, name) =>
        this.#budget.read(stream, line => log[name === 'stdout' ? 'info' : 'warn']({ from: name }, line)),
    }
    const process =
      (await prestarts?.take(this.#request, options)) ??
      (await startProcess(this.#isolation, this.#request, systemContext(signal), options))
    this.#running = process
    this.#hold = process.prepared.hold
    if (signal.aborted || this.#isQuarantined()) await process.end()
    return process
  }

  async #look(process: IsolatedProcess): Promise<void> {
    const { prepared, pid, channel } = process
    const metrics = await this.#isolation.look(prepared.id, pid ?? 0, systemContext(channel.signal))
    // Usage after its death is already counted.
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

  #excluded(): QuarantinedName | undefined {
    const { plugin, instance } = this.#request
    return this.#plugin.options.excluded?.find(item => item.plugin === plugin && item.instance === instance)
  }

  /** Starts nothing. The methods of its service fail from the first call on. */
  #skipStart(excluded: QuarantinedName): void {
    this.#state = 'quarantined'
    // The other nodes learn it from this worker: the one that the plugin ended can have been the only one.
    this.#announceQuarantine(excluded)
    this.#scope.log.error({ how: EXCLUDED_BECAUSE }, MESSAGES.excluded)
    const gone = pluginGone(this.#plugin.ref.name, EXCLUDED_BECAUSE)
    const methods = Object.entries(providedToken(this.#plugin)?.methods ?? {})
    this.#service = Object.fromEntries(methods.map(([name, kind]) => [name, rejecting(kind, gone)]))
  }

  readonly #isQuarantined = () => this.#state === 'quarantined'

  /** Other workers run the same plugin, so a quarantine applies to all of them. */
  #announceQuarantine(who: QuarantinedName = this.#request): void {
    const { log, signal } = this.#scope
    const announced = this.#isolation.quarantine(who, systemContext(signal))
    announced.catch((err: unknown) => log.warn({ err }, 'failed to announce the quarantine of a plugin to all workers'))
  }

  /** Applies a quarantine or a release that another worker announced. */
  async #watchQuarantine(): Promise<void> {
    const { log, signal } = this.#scope
    try {
      for await (const isOut of this.#isolation.quarantined(this.#request, systemContext(signal)))
        if (isOut) this.#quarantine()
        else this.#release()
    } catch (err) {
      log.warn({ err }, 'failed to watch for quarantines of other workers')
    }
  }

  #quarantine(): void {
    if (this.#isQuarantined() || this.#scope.signal.aborted) return
    clearTimeout(this.#timer)
    this.#state = 'quarantined'
    // The death of a running process is reported as usual; a process that waits for its restart is already dead.
    if (this.#running) this.#running.kill(ELSEWHERE)
    else this.#scope.log.error({ how: ELSEWHERE }, MESSAGES.quarantined)
  }

  /** The supervisor starts no plugin whose messages ended workers, until its own server is reloaded. */
  #release(): void {
    if (!this.#isQuarantined() || this.#scope.signal.aborted || !this.#limits) return
    this.#deaths = []
    this.#state = 'restarting'
    this.#scope.log.info({}, MESSAGES.released)
    // A process that has not ended yet starts again after its death.
    if (!this.#running) void this.#restart(this.#limits)
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

/** Missed heartbeats after which a process counts as blocked. This process can cause a single one. */
const LOOKS = 4
const LONGEST_MS = 2500
/** Milliseconds until the first heartbeat. */
const FIRST_MS = 20_000

interface Heartbeat {
  /** Resolves at the first heartbeat. */
  readonly alive: Promise<void>
  end(): void
}

/** Sends heartbeats to a process and kills it when it does not answer in time. `look` reads its resource usage. */
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
    if (missed++ * everyMs >= limitMs) return kill(`it hangs: no response for ${limitMs} ms`)
    // A failure means that the process ends, which is reported elsewhere.
    look().catch(() => {})
    if (missed === 1) ask().catch(() => {})
  }
  const alive = ask()
  const timer = setInterval(onTick, everyMs).unref()
  return { alive, end: () => clearInterval(timer) }
}

/** Runs one task at a time. All callers during a run share the next one. */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  const begin = () => {
    running = work().finally(() => (running = undefined))
    return running
  }
  const after = async (item: Promise<void>) => {
    await item.catch(() => {}) // its caller gets the error
    next = undefined
    await begin()
  }
  return () => (running ? (next ??= after(running)) : begin())
}
