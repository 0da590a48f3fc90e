import {
  type CallContext,
  redactData,
  redactText,
  type Scope,
  type SlotChange,
  type SlotToken,
  type SlotView,
  systemContext,
  type TapOptions,
  type Waterfall,
} from '@svc/core'
import { Checks, HealthFacts, MetricSources, PeerAnswers, type RefusalKind, Store } from '@svc/core/contracts'
import { grantedItems } from '@svc/core/internal'
import { type Channel, dataOf, methodsOf } from '../processes/channel.ts'
import { type BorrowedContexts, createBorrowedContexts } from './borrowed-contexts.ts'
import { hooksToken, HostBridge, type Level, PluginRunner, providedToken, REFUSAL_KINDS, RemoteTap } from './contract.ts'
import { canTap, type Contributions, createContributions, isPublicHook, MAX_NAME_LENGTH } from './contributions.ts'
import { hookNotPermitted } from './errors.ts'
import { grantedPeers, type HookView, peerHookView } from './granted-peers.ts'
import { grantedServices } from './granted-store.ts'
import type { Isolated } from './isolated-ref.ts'
import { MAX_LINE_LENGTH, type OutputLimiter, truncateFacts } from './output-limiter.ts'

interface HostBridgeOptions {
  readonly channel: Channel
  readonly uses: BorrowedContexts
  readonly contributions: Contributions
  readonly budget: OutputLimiter
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

/** Maximum time limit of a tap of an untrusted plugin. Callers of the hook wait for it. */
const LONGEST_TAP_MS = 60_000

/** A tap of a public hook gets the default limit, because the host itself waits for it. */
function boundedTap({ stage, limitMs }: TapOptions, mayWait: boolean): TapOptions {
  const limit = mayWait && Number.isFinite(limitMs) ? { limitMs: Math.min(Math.max(1, Number(limitMs)), LONGEST_TAP_MS) } : {}
  return { ...(Number.isFinite(stage) ? { stage: Number(stage) } : {}), ...limit }
}

/** An untrusted plugin cannot blame another plugin for its failure. */
const blaming = (plugin: string) => (error: unknown) => {
  throw Object.assign(error as Error, { plugin })
}

/** Calls a tap with the part of a value that its plugin may see. */
const viewedTap =
  (view: HookView, call: (value: unknown, ctx: CallContext) => Promise<unknown>) => async (value: unknown, ctx: CallContext) => {
    const part = view.shown(value)
    return part === undefined ? value : view.merged(value, await call(part, ctx))
  }

/** Slots with reports about the plugin itself. Readers of a report do not lend it their principal. */
const REPORTS: ReadonlySet<string> = new Set([Checks.name, HealthFacts.name, MetricSources.name])

const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'] satisfies Level[]

/** Applies the operations of the isolated plugin to its real scope, with the checks of the host. */
export function createHostBridge(plugin: Isolated, scope: Scope, parts: HostBridgeOptions): HostBridge {
  const { channel, uses, contributions, budget, refused } = parts
  return {
    async add(slot, name, { path, methods, data = {} }) {
      const token: SlotToken = plugin.own(slot)
      contributions.put({ path, name: `${token.name}/${name}`, data }, () => {
        const item = channel.reach(path, token, { only: methods, data }) as object
        const lent = REPORTS.has(token.name) ? uses.lendToItself(token, item) : uses.lend(token, item)
        return scope.add(token, name, { ...item, ...lent })
      })
    },
    async tap(hook, path, options) {
      if (!canTap(hook.id, plugin)) {
        const named = hook.id.slice(0, MAX_NAME_LENGTH)
        await refused('hooks', named)
        throw hookNotPermitted(plugin.ref.name, named)
      }
      contributions.put({ path, name: hook.id, isTap: true }, () => {
        const far = uses.lend(RemoteTap, channel.reach(path, RemoteTap))
        const call = (value: unknown, ctx: CallContext) =>
          (far.tap!(value, ctx) as Promise<unknown>).catch(blaming(plugin.ref.name))
        const view = plugin.ref.confinement && peerHookView(hook.id, plugin.ref.name)
        return scope.tap<Waterfall<unknown>>(
          hook,
          view ? viewedTap(view, call) : call,
          boundedTap(options, !plugin.ref.confinement || !isPublicHook(hook.id))
        )
      })
    },
    async remove(path) {
      contributions.remove(path)
    },
    async log(level, facts, message) {
      // a truncated secret would not be recognized
      if (LEVELS.includes(level) && budget.takes())
        scope.log[level](truncateFacts(redactData(facts)), message && redactText(message).slice(0, MAX_LINE_LENGTH))
    },
    async refused(kind, what) {
      if (REFUSAL_KINDS.includes(kind)) await refused(kind, String(what))
    },
  }
}

export type Method = (...args: unknown[]) => unknown

/** The connection to one process of the plugin. */
interface PluginConnection {
  readonly channel: Channel
  readonly budget: OutputLimiter
  /** Unix time in milliseconds at which its setup must have ended. */
  readonly deadline?: number
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

/** Offers the dependencies to the isolated plugin, runs its setup and returns a stub of its service. */
export async function exposeContributions(
  plugin: Isolated,
  scope: Scope,
  given: Record<string, unknown>,
  { channel, budget, refused, deadline }: PluginConnection
): Promise<Record<string, Method>> {
  const provides = providedToken(plugin)
  const uses = createBorrowedContexts(plugin.ref.name)
  const contributions = createContributions(plugin.ref.name)
  channel.signal.addEventListener('abort', () => contributions.removeAll(), { once: true })
  channel.offer('host_bridge', HostBridge, createHostBridge(plugin, scope, { channel, uses, contributions, budget, refused }))
  channel.offer<unknown>('hooks', hooksToken(provides), uses.guard(hooksToken(provides), scope.hooks))
  const services = offerServices(plugin, given, { channel, uses, refused, contributions })
  for (const [key, token] of Object.entries(plugin.requires)) {
    if (token.what === 'slot')
      await mirror(key, token, given[key] as SlotView<unknown>, scope, { channel, uses, plugin, deadline })
  }
  const { config, instance } = scope
  const watched = plugin.options.watch === undefined ? {} : { watched: true }
  const setup = { config, ...(instance === undefined ? {} : { instance }), services, ...watched }
  const only = await channel.reach('plugin_runner', PluginRunner).setup(setup, inTime(channel, deadline))
  return provides ? uses.lend(provides, channel.reach<unknown>('service', provides, { only }) as object) : {}
}

/** The channel, and the contexts that the plugin can use on it. */
interface ExposedChannel {
  readonly channel: Channel
  readonly uses: BorrowedContexts
}

interface ExposedServices extends ExposedChannel {
  readonly contributions: Contributions
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

function offerServices(
  { ref, requires, optional }: Isolated,
  given: Record<string, unknown>,
  { channel, uses, refused, contributions }: ExposedServices
): string[] {
  const services = Object.entries({ ...requires, ...optional }).filter(
    ([key, { what }]) => what === 'service' && given[key] !== undefined
  )
  const spaces = ref.confinement && grantedItems(ref.confinement.permissions, 'service', Store.name)
  const inSpaces = spaces && grantedServices({ plugin: ref.name, spaces, refused })
  const toPeers = ref.confinement && grantedPeers({ plugin: ref.name, hasAdded: item => contributions.has(item) })
  for (const [key, token] of services) {
    const service = given[key] as object
    const granted = [inSpaces, toPeers].reduce((all, granting) => (granting ? granting(token.name, all) : all), service)
    channel.offer<unknown>(`given.${key}`, token, uses.guard(token, granted))
  }
  return services.map(([key]) => key)
}

/** A context that ends with the channel, and at the deadline. */
const inTime = (channel: Channel, deadline: number | undefined): CallContext => ({
  ...systemContext(channel.signal),
  ...(deadline === undefined ? {} : { deadline }),
})

interface MirrorOptions extends ExposedChannel {
  readonly plugin: Isolated
  /** Until the plugin must have got the first items. */
  readonly deadline: number | undefined
}

/** Mirrors a slot to the isolated side, now and after each change. */
async function mirror(
  key: string,
  token: SlotToken,
  view: SlotView<unknown>,
  scope: Scope,
  { channel, uses, plugin, deadline }: MirrorOptions
) {
  const runner = channel.reach('plugin_runner', PluginRunner)
  const offers = new Map<string, () => void>()
  const show = (name: string) => {
    const item = view.get(name)
    // answers to workers can do what only the host may do
    const isHidden = plugin.ref.confinement && token.name === PeerAnswers.name && view.owner(name) !== plugin.ref.name
    if (item === undefined || isHidden) return []
    const path = `view.${key}.${name}`
    offers.set(name, channel.offer<unknown>(path, token, uses.guard(token, item as object)))
    return [{ name, path, owner: view.owner(name) ?? '', methods: methodsOf(token, item), data: dataOf(token, item) }]
  }
  const sendChange = async ({ added, removed }: Pick<SlotChange, 'added' | 'removed'>, ctx = systemContext(channel.signal)) => {
    for (const name of removed) offers.get(name)?.()
    await runner.change(key, { version: view.version, added: added.flatMap(show), removed }, ctx)
  }
  channel.signal.addEventListener(
    'abort',
    scope.tap(token.changed, change => sendChange(change)),
    { once: true }
  )
  await sendChange({ added: view.names(), removed: [] }, inTime(channel, deadline))
}
