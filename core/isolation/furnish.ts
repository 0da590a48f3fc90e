import type { Scope, TapOptions } from '../src/plugin.ts'
import {
  type AnyService,
  type AnySlot,
  type SlotChange,
  type SlotToken,
  type SlotView,
  systemUse,
  type Waterfall,
} from '../src/token.ts'
import type { RefusalKind } from '../contracts/isolation.ts'
import { type Channel, dataOf, methodsOf } from '../processes/channel.ts'
import { type Description, hooksToken, type Level, Outside, REFUSALS, Shell, Tapped } from './contract.ts'
import type { IsolatedRef, IsolateOptions } from './isolated-ref.ts'
import { hookNotPermitted } from './errors.ts'
import type { HeldConfig } from './held-config.ts'
import { createLentUses, type LentUses } from './lent-uses.ts'
import { mayJoin } from './permitted.ts'
import { LONGEST_LINE, type LineBudget, shortFacts } from './line-budget.ts'

/** A plugin that runs elsewhere, as the host holds it. */
export interface Isolated {
  readonly ref: IsolatedRef
  readonly options: IsolateOptions
  readonly section: string | undefined
  readonly requires: Description['requires']
  readonly optional: Description['optional']
  readonly provides: AnyService | undefined
  readonly config?: HeldConfig
  own<T extends AnyService | AnySlot>(token: T): T
}

export type Method = (...args: unknown[]) => unknown

/** One process of it. */
export interface Far {
  readonly channel: Channel
  readonly budget: LineBudget
  /** Unix milliseconds until which its setup must have ended. */
  readonly deadline?: number
  readonly refused: (kind: RefusalKind, what: string) => Promise<void>
}

/** Gives the plugin over there what it asked for and lets it set up; answers with the stub of its service. */
export async function furnish(
  plugin: Isolated,
  scope: Scope,
  given: Record<string, unknown>,
  { channel, budget, refused, deadline }: Far
): Promise<Record<string, Method>> {
  const { provides } = plugin
  const removals = new Map<string, () => void>()
  const uses = createLentUses(plugin.ref.name)
  channel.signal.addEventListener('abort', () => removals.forEach(remove => remove()), { once: true })
  channel.offer('outside', Outside, outsideOf(plugin, scope, { channel, uses, removals }, { budget, refused }))
  channel.offer<unknown>('hooks', hooksToken(provides), uses.guard(hooksToken(provides), scope.hooks))
  const services = offerServices(plugin, given, { channel, uses })
  for (const [key, token] of Object.entries(plugin.requires)) {
    if (token.what === 'slot') await mirror(key, token, given[key] as SlotView<unknown>, scope, { channel, uses, removals })
  }
  const { config, instance } = scope
  const setup = { config, ...(instance === undefined ? {} : { instance }), services }
  const only = await channel
    .reach('shell', Shell)
    .setup(setup, { ...systemUse(channel.signal), ...(deadline ? { deadline } : {}) })
  return provides ? uses.lend(provides, channel.reach<unknown>('service', provides, { only }) as object) : {}
}

/** The line to the far side, and who may be asked for over it. */
interface Border {
  readonly channel: Channel
  readonly uses: LentUses
  /** What goes when the process goes, by path. */
  readonly removals: Map<string, () => void>
}

function offerServices(
  { requires, optional }: Isolated,
  given: Record<string, unknown>,
  { channel, uses }: Pick<Border, 'channel' | 'uses'>
): string[] {
  const services = Object.entries({ ...requires, ...optional }).filter(
    ([key, { what }]) => what === 'service' && given[key] !== undefined
  )
  for (const [key, token] of services) channel.offer<unknown>(`given.${key}`, token, uses.guard(token, given[key] as object))
  return services.map(([key]) => key)
}

/** Shows a slot to the isolated side, now and after each change. */
async function mirror(key: string, token: SlotToken, view: SlotView<unknown>, scope: Scope, { channel, uses, removals }: Border) {
  const shell = channel.reach('shell', Shell)
  const offers = new Map<string, () => void>()
  const show = (name: string) => {
    const item = view.get(name)
    if (item === undefined) return []
    const path = `view.${key}.${name}`
    offers.set(name, channel.offer<unknown>(path, token, uses.guard(token, item as object)))
    return [{ name, path, owner: view.owner(name) ?? '', methods: methodsOf(token, item), data: dataOf(token, item) }]
  }
  const tell = async ({ added, removed }: Pick<SlotChange, 'added' | 'removed'>) => {
    for (const name of removed) offers.get(name)?.()
    await shell.change(key, { version: view.version, added: added.flatMap(show), removed }, systemUse(channel.signal))
  }
  removals.set(`view.${key}`, scope.tap(token.changed, tell))
  await tell({ added: view.names(), removed: [] })
}

/** The longest that a stranger may ask for: whoever calls the hook waits. */
const LONGEST_TAP_MS = 60_000

function boundedTap({ stage, limitMs }: TapOptions): TapOptions {
  const limit = Number.isFinite(limitMs) ? { limitMs: Math.min(Math.max(1, Number(limitMs)), LONGEST_TAP_MS) } : {}
  return { ...(Number.isFinite(stage) ? { stage: Number(stage) } : {}), ...limit }
}

const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'] satisfies Level[]

/** What the isolated plugin asks of its scope is asked of the real one, with the host's checks; all of it goes when its process goes. */
function outsideOf(
  plugin: Isolated,
  scope: Scope,
  { channel, uses, removals }: Border,
  { budget, refused }: Pick<Far, 'budget' | 'refused'>
): Outside {
  const keep = (path: string, remove: () => void) => {
    removals.get(path)?.()
    removals.set(path, remove)
  }
  return {
    async add(slot, name, { path, methods, data = {} }) {
      const token: SlotToken = plugin.own(slot)
      const item = channel.reach(path, token, { only: methods, data }) as object
      keep(path, scope.add(token, name, { ...item, ...uses.lend(token, item) }))
    },
    async tap(hook, path, options) {
      if (!mayJoin(hook.id, plugin)) {
        await refused('hooks', hook.id)
        throw hookNotPermitted(plugin.ref.name, hook.id)
      }
      const far = uses.lend(Tapped, channel.reach(path, Tapped))
      keep(
        path,
        scope.tap<Waterfall<unknown>>(hook, (value, use) => far.tap!(value, use), boundedTap(options))
      )
    },
    async remove(path) {
      removals.get(path)?.()
      removals.delete(path)
    },
    async log(level, facts, message) {
      if (LEVELS.includes(level) && budget.takes()) scope.log[level](shortFacts(facts), message?.slice(0, LONGEST_LINE))
    },
    async refused(kind, what) {
      if (REFUSALS.includes(kind)) await refused(kind, String(what))
    },
  }
}
