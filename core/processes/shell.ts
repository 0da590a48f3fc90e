import { messageOf, scopeClosed } from '../src/errors.ts'
import type { Log } from '../src/log.ts'
import type { Plugin, Scope } from '../src/plugin.ts'
import { type AnyService, type AnySlot, type SlotView, systemUse, type Use } from '../src/token.ts'
import { type Channel, dataOf, methodsOf } from './channel.ts'
import { type Crossed, hooksToken, Outside, type Setup, type Shell, Tapped, type ViewChange } from './isolation.ts'

/** Runs a plugin on the isolated side: its scope and what it is given are stubs that lead to the host. */
export function createShell(channel: Channel, name: string, load: () => Promise<Plugin>): Shell {
  const mirrors = new Map<string, Mirror>()
  const outside = channel.reach('outside', Outside)
  const log = logOf(outside, systemUse(channel.signal))
  let scope: IsolatedScope | undefined
  const mirrorOf = (key: string, token: AnySlot) => {
    const mirror = mirrors.get(key) ?? createMirror(channel, token)
    mirrors.set(key, mirror)
    return mirror
  }
  const givenOf = async ({ services }: Setup): Promise<Record<string, unknown>> => {
    const { requires, optional } = await load()
    const one = (key: string, token: AnyService | AnySlot) => {
      if (token.what === 'slot') return mirrorOf(key, token).view
      return services.includes(key) ? channel.reach<unknown>(`given.${key}`, token) : undefined
    }
    return Object.fromEntries(Object.entries({ ...requires, ...optional }).map(([key, token]) => [key, one(key, token)]))
  }
  return {
    async describe() {
      const { section, instances, type, config, requires, optional, provides } = await load()
      const given = { section, instances, type, config: config?.json, provides }
      return { requires, optional, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
    },
    async setup(setup) {
      const plugin = await load()
      const { provides } = plugin
      scope = createScope(channel, outside, { name, log, setup, provides })
      const service = await plugin.setup(scope.scope, await givenOf(setup))
      await scope.settle()
      if (!provides) return []
      channel.offer<unknown>('service', provides, service)
      return methodsOf<unknown>(provides, service)
    },
    async change(key, change) {
      const token = (await load()).requires[key]
      if (token?.what === 'slot') mirrorOf(key, token).change(change)
    },
    close: async () => scope?.close(),
  }
}

function logOf(outside: Outside, use: Use): Log {
  const write = (level: 'debug' | 'info' | 'warn' | 'error') => (facts: object, message?: string) => {
    // A line with facts that cannot cross is still a line.
    const lost = (error: unknown) => outside.log(level, { lost: messageOf(error) }, message, use)
    outside
      .log(level, facts, message, use)
      .catch(lost)
      .catch(() => {})
  }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

interface Mirror {
  readonly view: SlotView<unknown>
  change(change: ViewChange): void
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

interface IsolatedScope {
  readonly scope: Scope
  /** Waits until the host has taken all that was added so far; throws what it refused. Later refusals go to the log. */
  settle(): Promise<void>
  close(): Promise<void>
}
interface ScopeParts {
  readonly name: string
  readonly log: Log
  readonly setup: Setup
  readonly provides: AnyService | undefined
}
type Undo = () => unknown

function createScope(channel: Channel, outside: Outside, { name, log, setup, provides }: ScopeParts): IsolatedScope {
  const ending = new AbortController()
  const use = systemUse(channel.signal)
  const undos = new Set<Undo>()
  let asked: Promise<void>[] | undefined = []
  let count = 0
  const open = (what: string) => {
    if (ending.signal.aborted) throw scopeClosed(name, what)
  }
  const owned = (undo: Undo) => {
    undos.add(undo)
    return () => void (undos.delete(undo) && undo())
  }
  const cross = (crossed: Crossed, withdraw: () => void, answer: Promise<void>) => {
    const inSetup = asked?.push(answer)
    answer.catch(error => inSetup ?? log.error({ err: error }, 'the host refused what was added'))
    return owned(async () => {
      withdraw()
      // What the host has never taken, or lost with its process, needs no removal.
      await outside.remove(crossed.path, use).catch(() => {})
    })
  }
  const scope: Scope = {
    name,
    instance: setup.instance,
    config: setup.config,
    log,
    signal: ending.signal,
    hooks: channel.reach<unknown>('hooks', hooksToken(provides)) as Scope['hooks'],
    add(slot, itemName, item) {
      open(`added ${slot.name}/${itemName}`)
      const crossed = { path: `${slot.name}.${itemName}.${++count}`, methods: methodsOf(slot, item), data: dataOf(slot, item) }
      return cross(crossed, channel.offer<unknown>(crossed.path, slot, item), outside.add(slot, itemName, crossed, use))
    },
    tap(hook, tap, options = {}) {
      open(`tapped ${hook.id}`)
      const crossed = { path: `tap.${hook.id}.${++count}`, methods: ['tap'] }
      const withdraw = channel.offer(crossed.path, Tapped, { tap: async (value, of) => tap(value as never, of) })
      return cross(crossed, withdraw, outside.tap(hook, crossed.path, options, use))
    },
    use(thing) {
      open('took charge of a disposable')
      owned(() => (Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose]()))
      return thing
    },
    defer(undo) {
      open('deferred an undo')
      owned(undo)
    },
  }
  return {
    scope,
    async settle() {
      const answers = asked ?? []
      asked = undefined
      await Promise.all(answers)
    },
    async close() {
      ending.abort(scopeClosed(name, 'closing'))
      for (const undo of [...undos].reverse()) {
        undos.delete(undo)
        try {
          await undo()
        } catch (error) {
          log.error({ err: error }, 'an undo failed')
        }
      }
    },
  }
}
