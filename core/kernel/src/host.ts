import { differenceOf } from '../loading/order.ts'
import { createPackageFiles, PackageFiles } from '../loading/package-files.ts'
import { type HostOptions, type Plan, planHost, runCheck } from '../loading/plan.ts'
import { type CallCounter, createCallCounter, createSlot, grantedView, type Slot } from './slot.ts'
import {
  asSvcError,
  closeFailed,
  contractMismatch,
  formatError,
  hostCloseFailed,
  isSvcShaped,
  missingService,
  setupFailed,
  setupTimeout,
  StartFailed,
  type SvcError,
  svcError,
} from './errors.ts'
import { createEvents, Events, eventsOfIsolated } from './events.ts'
import { grantedItems } from '../loading/manifest.ts'
import { grantedService, injectDependencies, type InjectedDependencies, waitedFor } from './dependencies.ts'
import { referenceUnresolved } from '../config/errors.ts'
import { createHooks, type Hooks } from './hooks.ts'
import { redactError } from '../config/redaction.ts'
import { createLog, type Log, LogLines, LogRing } from './log.ts'
import { failedReport, Host, type HostReport, type HostState, type PluginReport, runningReport } from './report.ts'
import { createScope, type PluginBoundary, type OwnedScope } from './scope.ts'
import { createTracer, type Tracer } from './spans.ts'
import {
  type AnyService,
  type AnySlot,
  type CallContext,
  type ServiceToken,
  type SlotToken,
  type SlotView,
  systemContext,
} from './token.ts'
import { abortable, withTimeout } from './scheduling.ts'

/** A running host, for the program that started it: `await using host = await startHost(…)`. */
export interface RunningHost extends AsyncDisposable {
  readonly log: Log
  /** Returns a service by its token. Throws SERVICE_MISSING. */
  service<T, H>(token: ServiceToken<T, H>): T
  slot<T>(token: SlotToken<T>): SlotView<T>
  report(): HostReport
  /** What the host was planned from: the configuration, without the values of secrets, and its plugins. */
  plan(): Plan
  /** Reports the state `leaving` from now on, and works as before. */
  leave(): void
  /**
   * Drains the host and undoes everything. A second call waits for the first, but can withdraw the `successor`. Throws
   * CLOSE_FAILED when an undo failed.
   */
  close(options?: CloseOptions): Promise<void>
}

/** Options of closing a host. */
export interface CloseOptions {
  /** Another process takes the new work, so open connections end on their own. */
  readonly successor?: boolean
  /** Milliseconds that running work has to end. Default: the limit of each plugin. */
  readonly limitMs?: number
}

/**
 * Starts a host: plans, sets up the plugins one by one, then calls `ready`. A failing start undoes what was set up and throws
 * START_FAILED with all problems; one that `signal` ends throws the reason of its abort.
 */
export async function startHost(options: HostOptions = {}): Promise<RunningHost> {
  const { signal = new AbortController().signal } = options
  const plan = await planHost(options)
  signal.throwIfAborted()
  if (plan.problems.length > 0) throw new StartFailed(plan.problems)
  const host = new HostImpl(options, plan)
  try {
    for (const [order, plannedPlugin] of plan.plannedPlugins.entries()) {
      await host.setUp(plannedPlugin, order)
      signal.throwIfAborted()
    }
    await abortable(host.ready(), signal)
  } catch (error) {
    redactError(error)
    await host.close().catch((left: unknown) => host.log.warn({ err: left }, 'cleanup after a failed start was incomplete'))
    signal.throwIfAborted()
    throw error instanceof StartFailed ? error : new StartFailed([asSvcError(error, 'SETUP_FAILED')])
  }
  return host
}

type OrderedPlugin = Plan['plannedPlugins'][number]
const DIRECT: PluginBoundary = {
  setup: (_by, work) => work(),
  service: (_token, implementation) => implementation,
  item: (_token, item) => item,
  tap: (_ref, tap) => tap,
}

class HostImpl implements RunningHost {
  readonly log: ReturnType<typeof createLog>
  #options: HostOptions
  #plan: Plan
  #identity: Pick<HostReport, 'serverId' | 'nodeId' | 'clusterId' | 'worker' | 'roles'>
  #boundary: PluginBoundary
  #hooks: Hooks
  #tracer: Tracer
  #counts: CallCounter
  #slots = new Map<string, Slot>()
  #services = new Map<string, unknown>()
  /** The provided services of which a plugin needs permissions for single items. */
  #granted = new Map<string, AnyService>()
  #set: { plannedPlugin: OrderedPlugin; owned: OwnedScope; setupMs: number }[] = []
  #failed: PluginReport[]
  #ending = new AbortController()
  #ctx = systemContext(this.#ending.signal)
  #state: HostState = 'starting'
  #startedAt: number
  #closing: Promise<void> | undefined
  #successor = false

  constructor(options: HostOptions, plan: Plan) {
    const serverId = options.serverId ?? crypto.randomUUID()
    this.#identity = {
      serverId,
      nodeId: options.nodeId ?? serverId,
      clusterId: options.clusterId ?? serverId,
      worker: options.worker ?? `${serverId}.0`,
      ...(options.roles ? { roles: options.roles } : {}),
    }
    this.#options = { version: '0.0.0', ...options }
    this.#startedAt = options.startedAt ?? Date.now()
    this.#plan = plan
    this.#boundary = options.boundary ?? DIRECT
    this.#failed = [...plan.failed]
    const ring = new LogRing()
    this.log = createLog({ level: plan.kernel.log.level, ...options.log }, ring)
    for (const { name, error } of plan.failed) this.log.error({ plugin: name, ...error }, 'an optional plugin failed')
    for (const { where, hint, message } of plan.notes) this.log.warn({ where, hint }, message)
    const { tap_timeout_ms: limitMs, slow_tap_ms: slowMs, accounting, traces_per_second: perSecond } = plan.kernel.host
    this.#tracer = createTracer(perSecond)
    this.#hooks = createHooks({ log: this.log, limitMs, slowMs, accounting, tracer: this.#tracer })
    const { spans, spanContents } = Host.hooks
    const [reportSpans, reportContents] = [this.#hooks.caller(spans), this.#hooks.caller(spanContents)]
    this.#tracer.connect({
      isOn: this.#hooks.hasTaps(spans),
      isContentOn: this.#hooks.hasTaps(spanContents),
      spans: items => void reportSpans(items, this.#ctx),
      contents: items => void reportContents(items, this.#ctx),
    })
    this.#counts = createCallCounter({ accounting, tracer: this.#tracer })
    this.#services.set(Host.name, this.#boundary.service(Host, { report: async () => this.report() } satisfies Host, 'svc'))
    const lines: LogLines = { read: async after => ring.after(after) }
    this.#services.set(LogLines.name, this.#boundary.service(LogLines, lines, 'svc'))
    this.#services.set(Events.name, this.#boundary.service(Events, createEvents(), 'svc'))
    const packageOf = (plugin: string) =>
      plan.plannedPlugins.find(({ name, found }) => name === plugin && found.declared)?.found.folder
    this.#services.set(PackageFiles.name, this.#boundary.service(PackageFiles, createPackageFiles(packageOf), 'svc'))
  }

  async setUp(planned: OrderedPlugin, order: number): Promise<void> {
    const begun = performance.now()
    let owned: OwnedScope | undefined
    try {
      const plannedPlugin = await this.#resolved(planned)
      owned = this.#scopeFor(plannedPlugin, order)
      this.#checkServices(plannedPlugin)
      const services = this.#servicesFor(plannedPlugin)
      const given = injectDependencies(plannedPlugin.plugin, services, token => this.#viewFor(token, plannedPlugin))
      const result = await this.#runSetup(plannedPlugin, owned, given)
      given.settle()
      this.#provide(plannedPlugin, result)
      this.#set.push({ plannedPlugin, owned, setupMs: performance.now() - begun })
    } catch (error) {
      // Reports and other processes get this error as it is.
      redactError(error)
      if (this.#options.signal?.aborted) {
        await owned?.close()
        throw this.#options.signal.reason
      }
      await this.#abandon(planned, owned, error as SvcError, performance.now() - begun)
    }
  }

  async ready(): Promise<void> {
    for (const slot of this.#slots.values()) await slot.flush()
    this.#state = 'running'
    await this.#hooks.caller(Host.hooks.ready)({}, this.#ctx)
    // Not a warning: the contributions of a plugin can depend on its configuration.
    for (const { name, absent } of this.report().plugins)
      if (absent) this.log.debug({ plugin: name, absent }, 'a plugin declares names in its manifest that it has not added')
  }

  service<T, H>(token: ServiceToken<T, H>): T {
    const found = this.#services.get(token.name)
    if (found === undefined) throw missingService('the program', token.name, this.#services.keys())
    return found as T
  }

  slot<T>(token: SlotToken<T>): SlotView<T> {
    return this.#slot(token).view as SlotView<T>
  }

  report(): HostReport {
    const { version = '' } = this.#options
    const plugins = [...this.#set.map(item => runningReport(item.plannedPlugin, item.owned, item.setupMs)), ...this.#failed]
    const [successor, startedAt] = [this.#successor, this.#startedAt]
    const counted = { hooks: this.#hooks.stats(), calls: this.#counts.stats() }
    return { ...this.#identity, version, state: this.#state, successor, startedAt, plugins, ...counted }
  }

  plan(): Plan {
    return this.#plan
  }

  leave(): void {
    if (this.#state === 'running') this.#state = 'leaving'
  }

  close(options: CloseOptions = {}): Promise<void> {
    const isHurried = this.#closing !== undefined && this.#successor && options.successor === false
    this.#successor = !isHurried && (this.#successor || (options.successor ?? false))
    if (isHurried) void this.#notifyClosing(options)
    this.#closing ??= this.#closeOnce(options)
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #slot(token: AnySlot, by = 'the program'): Slot {
    const there = this.#slots.get(token.name)
    const difference = there && differenceOf(token, there.token)
    if (difference) throw contractMismatch(by, token.name, difference)
    if (there) return there
    const notify = this.#hooks.caller(token.changed)
    const made = createSlot(token, change => notify(change, this.#ctx))
    this.#slots.set(token.name, made)
    return made
  }

  #viewFor(token: AnySlot, { name, found }: OrderedPlugin): SlotView<unknown> {
    const { view } = this.#slot(token, name)
    const granted = grantedItems(found.permissions, 'slot', token.name)
    return granted ? grantedView(view, granted) : view
  }

  /** The services as this plugin may use them. */
  #servicesFor({ name, found }: OrderedPlugin): ReadonlyMap<string, unknown> {
    const isIsolated = found.isolation === 'process'
    if (this.#granted.size === 0 && !isIsolated) return this.#services
    const services = new Map(this.#services)
    if (isIsolated) services.set(Events.name, eventsOfIsolated(name, services.get(Events.name) as Events))
    for (const [service, token] of this.#granted) {
      const methods = services.get(service) as Parameters<typeof grantedService>[1]
      const ownerOf = (slot: string, item: string) => this.#slots.get(slot)?.view.owner(item)
      services.set(service, grantedService(token, methods, { plugin: name, permissions: found.permissions, ownerOf }))
    }
    return services
  }

  /** The plugin with secrets in place of the references in its configuration. Throws every problem with them. */
  async #resolved(planned: OrderedPlugin): Promise<OrderedPlugin> {
    const { name, references } = planned
    if (references.length === 0) return planned
    const problems: SvcError[] = []
    const secrets = new Map<string, string>()
    for (const reference of references) {
      const { name: secret = '' } = reference
      if (secrets.has(secret)) continue
      try {
        secrets.set(secret, await this.#secret(secret))
      } catch (error) {
        problems.push(referenceUnresolved(name, reference, error))
      }
    }
    if (problems.length > 0) throw oneOf(problems)
    const final = planned.resolve(secrets)
    const context = { running: this.#options.running === true }
    const plannedPlugin = { ...planned, config: final.config }
    problems.push(...final.problems)
    if (problems.length === 0) problems.push(...(await runCheck(plannedPlugin, this.#plan.kernel, context)))
    if (problems.length > 0) throw oneOf(problems)
    return plannedPlugin
  }

  /** The value of a secret. The plan starts the plugin that keeps the secrets first. */
  async #secret(name: string): Promise<string> {
    const token = [...this.#granted.values()].find(item => item.resolves !== undefined)
    if (!token) throw svcError('SERVICE_MISSING', 'the plugin that keeps the secrets did not start')
    const methods = this.#services.get(token.name) as Record<string, (name: string, ctx: CallContext) => Promise<unknown>>
    const limitMs = this.#plan.kernel.host.setup_timeout_ms
    const secret = await withTimeout(limitMs, () => methods[token.resolves!.method]!(name, this.#ctx))
    return (secret as { readonly value: string }).value
  }

  #scopeFor(plannedPlugin: OrderedPlugin, order: number): OwnedScope {
    const { name, instance, place, config, found, plugin } = plannedPlugin
    return createScope({
      name,
      ...(instance === undefined ? {} : { instance, place }),
      config,
      manifest: found.manifest,
      permissions: found.permissions,
      declared: found.declared,
      order,
      ...(plugin.provides ? { provides: plugin.provides } : {}),
      log: this.log.child(instance === undefined ? { plugin: name } : { plugin: name, instance }),
      hooks: this.#hooks,
      counts: this.#counts,
      tracer: this.#tracer,
      boundary: this.#boundary,
      closeLimitMs: () => this.#plan.kernel.host.close_timeout_ms,
      slot: token => this.#slot(token, name),
    })
  }

  async #runSetup(plannedPlugin: OrderedPlugin, owned: OwnedScope, given: InjectedDependencies): Promise<unknown> {
    const limit = this.#plan.kernel.host.setup_timeout_ms
    try {
      return await withTimeout(
        limit,
        () => this.#boundary.setup(plannedPlugin.name, () => plannedPlugin.plugin.setup(owned.scope, given.values)),
        {
          late: () => setupTimeout(plannedPlugin.name, limit, waitedFor(plannedPlugin.plugin, given, owned)),
          ...(this.#options.signal ? { signal: this.#options.signal } : {}),
        }
      )
    } catch (error) {
      // An error of the kernel about this plugin needs no wrapper.
      throw isSvcShaped(error) && error.plugin === plannedPlugin.name ? error : this.#setupFailed(plannedPlugin.name, error)
    }
  }

  #setupFailed(plugin: string, cause: unknown) {
    return setupFailed(plugin, cause, this.#options.without?.(plugin))
  }

  /** A required service can be missing although its plugin is installed: when that plugin is optional and failed. */
  #checkServices({ name, plugin }: OrderedPlugin) {
    const missing = Object.values(plugin.requires).find(token => token.what === 'service' && !this.#services.has(token.name))
    if (missing) throw missingService(name, missing.name, this.#services.keys())
  }

  #provide({ name, plugin: { provides, alsoProvides = [] } }: OrderedPlugin, result: unknown) {
    const methods = (result ?? {}) as Record<string, unknown>
    for (const token of [...(provides ? [provides] : []), ...alsoProvides]) {
      const missing = Object.keys(token.methods).filter(method => typeof methods[method] !== 'function')
      if (missing.length > 0)
        throw this.#setupFailed(name, new TypeError(`it provides "${token.name}" without ${missing.join(', ')}`))
    }
    const others = alsoProvides.filter(
      token => !this.#plan.plannedPlugins.some(({ plugin }) => plugin.provides?.name === token.name)
    )
    for (const token of [...(provides ? [provides] : []), ...others]) {
      this.#services.set(token.name, this.#boundary.service(token, result, name))
      if (token.items ?? token.resolves) this.#granted.set(token.name, token)
    }
  }

  async #abandon(plannedPlugin: OrderedPlugin, owned: OwnedScope | undefined, error: SvcError, setupMs: number) {
    for (const left of (await owned?.close()) ?? []) this.log.warn({ err: left }, 'cleanup after a failed setup was incomplete')
    if (!plannedPlugin.found.optional) throw error
    this.log.error({ plugin: plannedPlugin.name, err: error }, `an optional plugin failed:\n${formatError(error)}`)
    this.#failed.push({
      ...failedReport(plannedPlugin.found, error, setupMs),
      ...(plannedPlugin.instance === undefined ? {} : { instance: plannedPlugin.instance }),
    })
  }

  #notifyClosing({ limitMs }: CloseOptions) {
    const how = { successor: this.#successor, ...(limitMs === undefined ? {} : { limitMs }) }
    return this.#hooks.caller(Host.hooks.closing)(how, this.#ctx)
  }

  async #closeOnce(options: CloseOptions): Promise<void> {
    const served = this.#state === 'running' || this.#state === 'leaving'
    this.#state = 'closing'
    if (served) await this.#notifyClosing(options)
    const problems: SvcError[] = []
    for (const { owned } of this.#set.toReversed()) problems.push(...(await owned.close()))
    this.#ending.abort(svcError('HOST_CLOSED', 'the host was closed'))
    this.#hooks[Symbol.dispose]()
    problems.push(...leftovers(this.#slots, this.#hooks))
    this.#set = []
    this.#state = 'closed'
    for (const error of problems) this.log.error({ err: error }, error.message)
    if (problems.length > 0) throw hostCloseFailed(problems)
  }
}

const oneOf = (problems: readonly SvcError[]) => (problems.length === 1 ? problems[0]! : new StartFailed(problems))

/** Lists slot items and taps that remain after all plugins were undone. */
function leftovers(slots: Map<string, Slot>, hooks: Hooks): SvcError[] {
  const items = [...slots].flatMap(([slot, { view }]) =>
    view.names().map(name => ({ plugin: view.owner(name) ?? 'svc', what: `${slot}/${name} is still there` }))
  )
  const taps = hooks.tapped().map(id => ({ plugin: 'svc', what: `${id} is still tapped` }))
  return [...items, ...taps].map(item => closeFailed(item.plugin, 'left over', new Error(item.what)))
}
