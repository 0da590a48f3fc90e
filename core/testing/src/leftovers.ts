import { type AsyncHook, AsyncLocalStorage, createHook } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type SvcError, svcError } from '@svc/core'

/** Tracks resources that the plugins of one host open. */
export interface LeftoverWatch {
  /** Runs work of a plugin. Everything that it opens, directly or later, belongs to the plugin. */
  run<T>(plugin: string, work: () => T): T
  /** Stops tracking. Throws LEFTOVERS with plugins and kinds when something is still open. */
  end(): Promise<void>
}

interface Opened {
  readonly kind: string
  readonly plugin: string
  /** The stack is formatted only on demand, because that is the slowest part. */
  readonly place: Error
  readonly resource: WeakRef<Resource>
}
/** Handles and timers as `async_hooks` shows them. A resource without `hasRef` is a request, which ends on its own. */
interface Resource {
  hasRef?(): boolean
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

function note(id: number, type: string, _trigger: number, resource: Resource): void {
  const owner = owners.getStore()
  if (!owner || !('hasRef' in resource)) return
  owner.opened.set(id, { kind: nameOf(type), plugin: owner.plugin, place: new Error(), resource: new WeakRef(resource) })
}

/** The place where it was opened: the first line of the stack outside of Node and this file. */
function placeOf({ place: { stack = '' } }: Opened): string {
  const line = stack.split('\n').find(item => item.includes('file:') && !item.includes(import.meta.url))
  return line?.match(/[^/]+:\d+(?=:\d+\)?$)/)?.[0] ?? 'unknown'
}

const NAMES: Readonly<Record<string, string>> = {
  TCPSERVERWRAP: 'a server',
  PIPESERVERWRAP: 'a server',
  TCPWRAP: 'a socket',
  PIPEWRAP: 'a pipe',
  PROCESSWRAP: 'a child process',
  WORKER: 'a worker thread',
  Timeout: 'a timer',
  FSEVENTWRAP: 'a file watcher',
}
const nameOf = (type: string) => NAMES[type] ?? type

function forget(id: number): void {
  for (const opened of watches.values()) opened.delete(id)
}

/** Resources that keep the process alive count as open, unreferenced ones do not. */
const isOpen = ({ resource }: Opened) => resource.deref()?.hasRef?.() === true

/** Starts tracking. The asynchronous context tells which plugin opened a resource. */
export function watchLeftovers(): LeftoverWatch {
  const opened = new Map<number, Opened>()
  const left = () => [...opened.values()].filter(isOpen)
  const watch: LeftoverWatch = {
    run: (plugin, work) => owners.run({ plugin, opened }, work),
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
    things: all.map(item => `${item.kind} (${placeOf(item)})`),
  }))
  return svcError('LEFTOVERS', open.map(item => `${item.plugin} left open: ${item.things.join(', ')}`).join('\n'), {
    plugin: open.map(item => item.plugin).join(', '),
    details: { open },
    hint: 'Give what a plugin opens to its scope: scope.use(server), scope.defer(() => clearInterval(timer)), or end it when scope.signal aborts',
  })
}
