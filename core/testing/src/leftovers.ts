import { type AsyncHook, AsyncLocalStorage, createHook } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type SvcError, svcError } from '@svc/core'
import { describeHandle, type HandleResource, handlesText, type OpenHandle, recordPlace } from '@svc/runtime/isolation'

/** Tracks resources that the plugins of one host open. */
export interface LeftoverWatch {
  /** Runs work of a plugin. Everything that it opens, directly or later, belongs to the plugin. */
  run<T>(plugin: string, work: () => T): T
  /** The open handles of a plugin. */
  open(plugin: string): OpenHandle[]
  /** Stops tracking. Throws LEFTOVERS with plugins and kinds when something is still open. */
  end(): Promise<void>
}

interface Opened {
  readonly type: string
  readonly plugin: string
  readonly place: Error
  readonly resource: WeakRef<HandleResource>
}
interface Owner {
  readonly plugin: string
  readonly opened: Map<number, Opened>
}

const SETTLE_MS = 1000
const owners = new AsyncLocalStorage<Owner | undefined>()
/** The open resources of each watch. */
const watches = new Map<LeftoverWatch, Map<number, Opened>>()
let hook: AsyncHook | undefined

function note(id: number, type: string, _trigger: number, resource: HandleResource): void {
  const owner = owners.getStore()
  if (!owner || !('hasRef' in resource)) return
  owner.opened.set(id, { type, plugin: owner.plugin, place: recordPlace(), resource: new WeakRef(resource) })
}

function forget(id: number): void {
  for (const opened of watches.values()) opened.delete(id)
}

/** Resources that keep the process alive count as open, unreferenced ones do not. */
const isOpen = ({ resource }: Opened) => resource.deref()?.hasRef?.() === true

/** The files of this package open nothing on behalf of a plugin. */
const ASIDE = new URL('.', import.meta.url).pathname
const described = ({ type, place }: Opened): OpenHandle => describeHandle(type, place, path => path.startsWith(ASIDE))

/** The plugin whose code runs, if any. */
export const runningPlugin = (): string | undefined => owners.getStore()?.plugin

/** Starts tracking. The asynchronous context tells which plugin opened a resource. */
export function watchLeftovers(): LeftoverWatch {
  const opened = new Map<number, Opened>()
  const left = () => [...opened.values()].filter(isOpen)
  const watch: LeftoverWatch = {
    run: (plugin, work) => owners.run({ plugin, opened }, work),
    open: plugin => left().flatMap(one => (one.plugin === plugin ? described(one) : [])),
    async end() {
      const end = performance.now() + SETTLE_MS
      while (left().length > 0 && performance.now() < end) await owners.run(undefined, () => sleep(5))
      watches.delete(watch)
      if (watches.size === 0) hook?.disable()
      if (left().length > 0) throw leftOpen(left())
    },
  }
  watches.set(watch, opened)
  // @types/node does not have trackPromises yet, which avoids a call for each promise.
  hook ??= createHook({ init: note, destroy: forget, trackPromises: false } as Parameters<typeof createHook>[0])
  hook.enable()
  return watch
}

function leftOpen(left: readonly Opened[]): SvcError {
  const open = [...Map.groupBy(left, opened => opened.plugin)].map(([plugin, all]) => ({
    plugin,
    things: handlesText(all.map(described)),
  }))
  return svcError('LEFTOVERS', open.map(item => `${item.plugin} left open: ${item.things}`).join('\n'), {
    plugin: open.map(item => item.plugin).join(', '),
    details: { open },
    hint: 'Give what a plugin opens to its scope: scope.use(server), scope.defer(() => clearInterval(timer)), or end it when scope.signal aborts',
  })
}
