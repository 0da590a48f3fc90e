import { createHook } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

/** Frames of a stack. Code that replaces functions of Node, as tracing libraries do, adds some between them and the plugin. */
const FRAMES = 50

/** Records where a handle is created. Its stack is formatted only on demand, because that is the slowest part. */
export function recordPlace(): Error {
  const before = Error.stackTraceLimit
  Error.stackTraceLimit = FRAMES
  const place = new Error()
  Error.captureStackTrace(place, recordPlace)
  Error.stackTraceLimit = before
  return place
}

/** Something that keeps a process alive: a socket, a timer, a server. */
export interface OpenHandle {
  /** For people: `a socket`. */
  readonly kind: string
  /** The line that opened it: `pool.js:12`. */
  readonly place: string
  /** The npm packages whose code opened it, innermost first. */
  readonly packages: readonly string[]
}

/** A handle or timer as `async_hooks` shows it. A resource without `hasRef` is a request, which ends on its own. */
export interface HandleResource {
  hasRef?(): boolean
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

/** Frames of modules in files, with path and line: of ES modules `file:///a.js:1:2`, of CommonJS `/a.js:1:2`. */
const FRAME = /(?:file:\/\/|[( ])(\/[^\n:()]+):(\d+):\d+\)?$/
const PACKAGE = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//

/** Describes a handle by the stack of its creation. `isAside`: code that is not named, by its path. */
export function describeHandle(type: string, { stack = '' }: Error, isAside: (path: string) => boolean): OpenHandle {
  const frames = stack.split('\n').flatMap(line => {
    const [, path = '', at = ''] = FRAME.exec(line) ?? []
    return path === '' || isAside(path) ? [] : [{ path, at }]
  })
  const [first] = frames
  return {
    kind: NAMES[type] ?? type,
    place: first ? `${first.path.slice(first.path.lastIndexOf('/') + 1)}:${first.at}` : 'unknown',
    packages: [...new Set(frames.flatMap(({ path }) => PACKAGE.exec(path)?.[1] ?? []))],
  }
}

/** A sentence part: `a socket of pg (connection.js:63)`. */
export const handleText = ({ kind, place, packages: [first] }: OpenHandle): string =>
  `${kind}${first === undefined ? '' : ` of ${first}`} (${place})`

/** Equal handles once, with their number: `a timer (index.js:9) × 50`. */
export const handlesText = (handles: readonly OpenHandle[]): string =>
  [...Map.groupBy(handles, handleText)].map(([text, all]) => (all.length === 1 ? text : `${text} × ${all.length}`)).join(', ')

/** The open handles that the code of a plugin has created. */
export interface HandleWatch {
  open(): readonly OpenHandle[]
  /** Waits a moment for handles that are being closed. */
  settled(): Promise<readonly OpenHandle[]>
}

const SETTLE_MS = 1000

/** Watches all handles that this process creates from now on, except those of the code in `aside`. */
export function watchHandles(aside: readonly string[]): HandleWatch {
  const all = new Map<number, { readonly type: string; readonly created: Error; readonly resource: WeakRef<HandleResource> }>()
  const init = (id: number, type: string, _trigger: number, resource: HandleResource) => {
    if ('hasRef' in resource) all.set(id, { type, created: recordPlace(), resource: new WeakRef(resource) })
  }
  // @types/node does not have trackPromises yet, which avoids a call for each promise.
  createHook({ init, destroy: id => void all.delete(id), trackPromises: false } as Parameters<typeof createHook>[0]).enable()
  const isAside = (path: string) => aside.some(folder => path.startsWith(folder))
  const open = () =>
    [...all.values()]
      .filter(({ resource }) => resource.deref()?.hasRef?.() === true)
      .map(({ type, created }) => describeHandle(type, created, isAside))
      .filter(({ place }) => place !== 'unknown')
  return {
    open,
    async settled() {
      const end = performance.now() + SETTLE_MS
      let left = open()
      while (left.length > 0 && performance.now() < end) {
        await sleep(10)
        left = open()
      }
      return left
    },
  }
}
