import { contractMismatch, messageOf } from '../src/errors.ts'
import { differenceOf } from '../src/order.ts'
import type { Plugin, Scope } from '../src/plugin.ts'
import { schema } from '../config/schema.ts'
import {
  type AnyService,
  type AnySlot,
  type SlotChange,
  type SlotToken,
  type SlotView,
  systemUse,
  type Waterfall,
} from '../src/token.ts'
import { createBackoff } from '../processes/backoff.ts'
import { type Channel, dataOf, methodsOf } from '../processes/channel.ts'
import { notIsolable } from '../processes/errors.ts'
import { type IsolatedProcess, type IsolatedRef, type IsolateOptions, startProcess } from './isolated-process.ts'
import { createLentUses, type LentUses } from './lent-uses.ts'
import { type Description, hooksToken, type Level, Outside, Shell, Tapped } from './contract.ts'

/**
 * Makes a plugin that runs the given one, unchanged, in a process of its own: `plugins: [{ use: await isolate(ref), name: ref.name, manifest }]`.
 * Runs its module once, over there, to learn what it declares. What the host gives it and what it adds cross as stubs.
 */
export async function isolate(ref: IsolatedRef, options: IsolateOptions = {}): Promise<Plugin> {
  const { section, instances, type, config, requires, optional, provides } = await describe(ref, options)
  const own = <T extends AnyService | AnySlot>(token: T): T => hostToken(ref, options, token)
  const ownAll = <T extends AnyService | AnySlot>(tokens: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(tokens).map(([key, token]) => [key, own(token)]))
  const plugin = {
    ref,
    options,
    own,
    requires: ownAll(requires),
    optional: ownAll(optional),
    provides: provides && own(provides),
  }
  return Object.freeze({
    ...(section === undefined ? {} : { section }),
    ...(instances === undefined ? {} : { instances }),
    ...(type === undefined ? {} : { type }),
    ...(config === undefined ? {} : { config: schema(config) }),
    ...(plugin.provides ? { provides: plugin.provides } : {}),
    requires: plugin.requires,
    optional: plugin.optional,
    setup: (scope: Scope, given: Record<string, unknown>) => setUp(plugin, scope, given),
  })
}

interface Isolated {
  readonly ref: IsolatedRef
  readonly options: IsolateOptions
  readonly requires: Description['requires']
  readonly optional: Description['optional']
  readonly provides: AnyService | undefined
  own<T extends AnyService | AnySlot>(token: T): T
}

/** The host's own token where it has one: the offering side never uses the table that a stranger brings. */
function hostToken<T extends AnyService | AnySlot>({ name }: IsolatedRef, { contracts = [] }: IsolateOptions, token: T): T {
  if (token.what === 'slot' && token.local) throw notIsolable(name, token.name)
  const ours = contracts.find((one): one is T => one.what === token.what && one.name === token.name)
  const difference = ours && differenceOf(token, ours)
  if (difference) throw contractMismatch(name, token.name, difference)
  return ours ?? token
}

async function describe(ref: IsolatedRef, options: IsolateOptions): Promise<Description> {
  const process = startProcess(ref, options)
  try {
    const { startLimitMs = 30_000 } = options
    const { channel } = process
    return await channel.reach('shell', Shell).describe({ ...systemUse(channel.signal), deadline: Date.now() + startLimitMs })
  } finally {
    await process.end()
  }
}

type Method = (...args: unknown[]) => unknown

/** Sets the plugin up over there, and again after its death if that is wanted; its service goes on under the same stub. */
async function setUp(plugin: Isolated, scope: Scope, given: Record<string, unknown>): Promise<unknown> {
  const { respawn, onGone, onBack } = plugin.options
  const backoff = createBackoff()
  let timer: NodeJS.Timeout | undefined
  let isolated: IsolatedProcess | undefined
  let service: Record<string, Method> = {}
  const onFault = (error: unknown, where: string) => scope.log.error({ err: error, where }, 'failed for an isolated plugin')
  const begin = async () => {
    isolated = startProcess(plugin.ref, plugin.options, onFault)
    try {
      service = await furnish(plugin, scope, given, isolated.channel)
    } catch (error) {
      await isolated.end()
      throw error
    }
    void isolated.ended.then(died)
  }
  const died = (how: string) => {
    if (scope.signal.aborted) return
    const delayMs = respawn ? backoff() : undefined
    scope.log.error({ how, delayMs }, 'the process of an isolated plugin has ended')
    onGone?.(how, delayMs)
    if (delayMs !== undefined) timer = setTimeout(() => void again(), delayMs)
  }
  const again = () => begin().then(onBack, error => died(messageOf(error)))
  // Before it begins: a setup that never ends is closed too.
  scope.defer(() => {
    clearTimeout(timer)
    return isolated?.end()
  })
  await begin()
  const methods = Object.keys(service)
  return plugin.provides && Object.fromEntries(methods.map(name => [name, (...args: unknown[]) => service[name]!(...args)]))
}

/** Gives the plugin over there what it asked for and lets it set up; answers with the stub of its service. */
async function furnish(
  plugin: Isolated,
  scope: Scope,
  given: Record<string, unknown>,
  channel: Channel
): Promise<Record<string, Method>> {
  const { provides } = plugin
  const removals = new Map<string, () => void>()
  const uses = createLentUses(plugin.ref.name)
  channel.signal.addEventListener('abort', () => removals.forEach(remove => remove()), { once: true })
  channel.offer('outside', Outside, outsideOf(plugin, scope, { channel, uses, removals }))
  channel.offer<unknown>('hooks', hooksToken(provides), uses.guard(hooksToken(provides), scope.hooks))
  const services = offerServices(plugin, given, { channel, uses })
  for (const [key, token] of Object.entries(plugin.requires)) {
    if (token.what === 'slot') await mirror(key, token, given[key] as SlotView<unknown>, scope, { channel, uses, removals })
  }
  const { config, instance } = scope
  const setup = { config, ...(instance === undefined ? {} : { instance }), services }
  const only = await channel.reach('shell', Shell).setup(setup, systemUse(channel.signal))
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

const LEVELS: readonly string[] = ['debug', 'info', 'warn', 'error'] satisfies Level[]

/** What the isolated plugin asks of its scope is asked of the real one, with the host's checks; all of it goes when its process goes. */
function outsideOf(plugin: Isolated, scope: Scope, { channel, uses, removals }: Border): Outside {
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
      const far = uses.lend(Tapped, channel.reach(path, Tapped))
      keep(
        path,
        scope.tap<Waterfall<unknown>>(hook, (value, use) => far.tap!(value, use), options)
      )
    },
    async remove(path) {
      removals.get(path)?.()
      removals.delete(path)
    },
    async log(level, facts, message) {
      if (LEVELS.includes(level)) scope.log[level](facts, message)
    },
  }
}
