import {
  type AnyService,
  type AnySlot,
  codeOf,
  type Log,
  messageOf,
  type Plugin,
  type SlotView,
  systemContext,
  type CallContext,
  type Scope,
} from '@svc/core'
import { noSpan, whereOf, scopeClosed } from '@svc/core/internal'
import { type Channel, methodsOf, dataOf } from '../processes/channel.ts'
import type { OwnConfig } from './configured-servers.ts'
import type { HandleWatch } from './open-handles.ts'
import {
  HostBridge,
  providedToken,
  type SetupRequest,
  type PluginRunner,
  type SlotViewChange,
  type RemoteItem,
  hooksToken,
  RemoteTap,
} from './contract.ts'

interface RunnerEvents {
  readonly watch: () => HandleWatch
  /** Receives the configuration before the setup. */
  readonly configured: (config: OwnConfig) => void
}

/** Runs a plugin on the isolated side. Its scope and its dependencies are stubs that lead to the host. */
export function createPluginRunner(
  channel: Channel,
  name: string,
  load: () => Promise<Plugin>,
  { watch, configured }: RunnerEvents
): PluginRunner {
  const mirrors = new Map<string, Mirror>()
  const host = channel.reach('host_bridge', HostBridge)
  const log = logOf(host, systemContext(channel.signal))
  let scope: IsolatedScope | undefined
  let handles: HandleWatch | undefined
  const mirrorOf = (key: string, token: AnySlot) => {
    const mirror = mirrors.get(key) ?? createMirror(channel, token)
    mirrors.set(key, mirror)
    return mirror
  }
  const givenOf = async ({ services }: SetupRequest): Promise<Record<string, unknown>> => {
    const { requires, optional } = await load()
    const single = (key: string, token: AnyService | AnySlot) => {
      if (token.what === 'slot') return mirrorOf(key, token).view
      return services.includes(key) ? channel.reach<unknown>(`given.${key}`, token) : undefined
    }
    return Object.fromEntries(Object.entries({ ...requires, ...optional }).map(([key, token]) => [key, single(key, token)]))
  }
  return {
    async describe() {
      const { section, instances, type, config, requires, optional, provides, alsoProvides } = await load()
      const given = { section, instances, type, config: config?.json, provides, alsoProvides }
      return { requires, optional, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
    },
    async setup(setup) {
      if (setup.watched) handles = watch()
      const plugin = await load()
      const { section, instances } = plugin
      const provides = providedToken(plugin)
      configured({ section, instances, value: setup.config })
      scope = new IsolatedScope({ channel, host, name, log, setup, provides })
      const service = await runSetup(plugin, scope, await givenOf(setup))
      if (!provides) return []
      channel.offer<unknown>('service', provides, service)
      return methodsOf<unknown>(provides, service)
    },
    async change(key, change) {
      const token = (await load()).requires[key]
      if (token?.what === 'slot') mirrorOf(key, token).change(change)
    },
    async close() {
      await scope?.close()
      return (await handles?.settled()) ?? []
    },
    handles: async () => handles?.open() ?? [],
    beat: async () => {},
  }
}

/** Adds the place to an error, because stacks do not cross the channel. */
async function runSetup(plugin: Plugin, scope: IsolatedScope, given: Record<string, unknown>): Promise<unknown> {
  try {
    const service: unknown = await plugin.setup(scope, given)
    await scope.settle()
    return service
  } catch (error) {
    throw error instanceof Error ? Object.assign(error, whereOf(scope.name, error)) : error
  }
}

/** Converts an error to plain fields for the log, because class instances do not cross the channel. */
function plainError(error: Error): object {
  const { message, stack, cause } = error
  const inner = cause instanceof Error && !message.includes(cause.message) ? `: ${cause.message}` : ''
  const code = codeOf(error)
  return { type: error.constructor.name, message: message + inner, stack, ...(code === undefined ? {} : { code }) }
}

const plainFacts = (facts: object) =>
  Object.fromEntries(Object.entries(facts).map(([key, fact]) => [key, fact instanceof Error ? plainError(fact) : fact]))

function logOf(host: HostBridge, ctx: CallContext): Log {
  const write = (level: 'debug' | 'info' | 'warn' | 'error') => (facts: object, message?: string) => {
    // Fields that cannot cross do not suppress the line.
    const lost = (error: unknown) => host.log(level, { lost: messageOf(error) }, message, ctx)
    host
      .log(level, plainFacts(facts), message, ctx)
      .catch(lost)
      .catch(() => {})
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

interface Mirror {
  readonly view: SlotView<unknown>
  change(change: SlotViewChange): void
}

function createMirror(channel: Channel, token: AnySlot): Mirror {
  const held = new Map<string, { item: unknown; owner: string }>()
  let version = 0
  const view: SlotView<unknown> = {
    get version() {
      return version
    },
    get size() {
      return held.size
    },
    get: name => held.get(name)?.item,
    has: name => held.has(name),
    names: () => [...held.keys()],
    entries: () => [...held].map(([name, { item }]) => [name, item]),
    owner: name => held.get(name)?.owner,
  }
  return {
    view: Object.freeze(view),
    change(change) {
      version = change.version
      for (const name of change.removed) held.delete(name)
      for (const { name, owner, path, methods: only, data = {} } of change.added) {
        held.set(name, { owner, item: channel.reach<unknown>(path, token, { only, data }) })
      }
    },
  }
}

interface IsolatedScopeOptions {
  readonly channel: Channel
  readonly host: HostBridge
  readonly name: string
  readonly log: Log
  readonly setup: SetupRequest
  readonly provides: AnyService | undefined
}
type Undo = () => unknown

/**
 * The scope of a plugin on the isolated side. It offers contributions on the channel and adds them to the real scope in the
 * host.
 */
class IsolatedScope implements Scope {
  readonly name: string
  readonly instance: string | undefined
  readonly config: unknown
  readonly log: Log
  readonly hooks: Scope['hooks']
  readonly signal: AbortSignal
  readonly #parts: IsolatedScopeOptions
  readonly #ending = new AbortController()
  readonly #undos = new Set<Undo>()
  #asked: Promise<void>[] | undefined = []
  #count = 0

  constructor(parts: IsolatedScopeOptions) {
    const { name, log, setup, channel, provides } = parts
    this.#parts = parts
    this.name = name
    this.log = log
    this.instance = setup.instance
    this.config = setup.config
    this.signal = this.#ending.signal
    this.hooks = channel.reach<unknown>('hooks', hooksToken(provides)) as Scope['hooks']
  }

  // Fields instead of methods, because a plugin can destructure its scope: `setup({ add, config })`.
  readonly add: Scope['add'] = (slot, name, item) => {
    this.#open(`added ${slot.name}/${name}`)
    const { channel, host } = this.#parts
    const crossed = { path: `${slot.name}.${name}.${++this.#count}`, methods: methodsOf(slot, item), data: dataOf(slot, item) }
    const withdraw = channel.offer<unknown>(crossed.path, slot, item)
    return this.#cross(crossed, withdraw, host.add(slot, name, crossed, systemContext(channel.signal)))
  }

  readonly tap: Scope['tap'] = (hook, tap, options = {}) => {
    this.#open(`tapped ${hook.id}`)
    const { channel, host } = this.#parts
    const crossed = { path: `tap.${hook.id}.${++this.#count}`, methods: ['tap'] }
    const withdraw = channel.offer(crossed.path, RemoteTap, { tap: async (value, ctx) => tap(value as never, ctx) })
    return this.#cross(crossed, withdraw, host.tap(hook, crossed.path, options, systemContext(channel.signal)))
  }

  /** The host times the calls to this plugin. */
  readonly span: Scope['span'] = (_name, ctx) => noSpan(ctx)

  readonly use: Scope['use'] = thing => {
    this.#open('took ownership of a disposable')
    this.#owned(() => (Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose]()))
    return thing
  }

  readonly defer: Scope['defer'] = undo => {
    this.#open('deferred an undo function')
    this.#owned(undo)
  }

  /** Waits until the host has accepted all contributions so far. Throws its rejections. Later rejections are logged. */
  async settle(): Promise<void> {
    const asked = this.#asked ?? []
    this.#asked = undefined
    await Promise.all(asked)
  }

  async close(): Promise<void> {
    this.#ending.abort(scopeClosed(this.name, 'closing'))
    for (const undo of [...this.#undos].reverse()) {
      this.#undos.delete(undo)
      try {
        await undo()
      } catch (error) {
        this.log.error({ err: error }, 'an undo function failed')
      }
    }
  }

  #open(what: string) {
    if (this.signal.aborted) throw scopeClosed(this.name, what)
  }

  #owned(undo: Undo): () => void {
    this.#undos.add(undo)
    return () => void (this.#undos.delete(undo) && undo())
  }

  #cross({ path }: RemoteItem, withdraw: () => void, answer: Promise<void>): () => void {
    const inSetup = this.#asked?.push(answer)
    answer.catch(error => inSetup ?? this.log.error({ err: error }, 'the host rejected a contribution'))
    return this.#owned(async () => {
      withdraw()
      // If the host never accepted it, or lost it with its process, no removal is needed.
      await this.#parts.host.remove(path, systemContext(this.#parts.channel.signal)).catch(() => {})
    })
  }
}
