import { writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'

/** An isolated plugin instance. */
export interface HandledPlugin {
  readonly plugin: string
  readonly instance?: string
}

/** A plugin that no worker of a generation starts. */
export interface ExcludedPlugin extends HandledPlugin {
  /** Since when, in Unix milliseconds. */
  readonly at: number
}

/**
 * Start data of the watcher thread. `cells`: the number of frames so far, and the plugin whose frame is being handled (its
 * number in the order of the messages to the thread, from 1; 0: none).
 */
export interface WatcherData {
  readonly cells: Int32Array
  readonly path: string
}

/** Indexes of the cells. */
export const [COUNT, WHOSE] = [0, 1]

interface Trace {
  readonly path: string
  readonly plugins: string[]
  readonly cells: Int32Array
  thread: Worker | undefined
  /** The plugin whose frame was handled last in this event loop turn. Rejections surface at its end. */
  last: number
}

let trace: Trace | undefined

// The build renames the entry together with this file.
const WATCHER = new URL(`../processes/handling-watcher${extname(import.meta.url)}`, import.meta.url)

/**
 * Records in the file `path` which plugin's frame this process was handling when it ended or stopped responding. Without such a
 * frame there is no file. The supervisor of a worker reads it.
 */
export function traceHandling(path: string): void {
  const mine: Trace = { path, plugins: [], cells: new Int32Array(new SharedArrayBuffer(8)), thread: undefined, last: 0 }
  const note = (whose: number) => {
    if (whose > 0) writeTrace(path, mine.plugins[whose - 1]!)
  }
  trace = mine
  process.on('exit', () => note(mine.cells[WHOSE]!))
  process.on('uncaughtExceptionMonitor', (_, origin) =>
    note(mine.cells[WHOSE]! || (origin === 'unhandledRejection' ? mine.last : 0))
  )
}

function writeTrace(path: string, plugin: string): void {
  try {
    writeFileSync(path, plugin, { mode: 0o600 })
  } catch {
    // Without a folder there is no trace, and no plugin is blamed.
  }
}

/**
 * Returns a function that runs work for the frames of one plugin. If this process ends or blocks during the work, the plugin is
 * blamed. The synchronous part and its microtasks are covered. It costs one memory access; a thread reads the cell and writes
 * the trace when it does not change.
 */
export function handlingFor(plugin: HandledPlugin): (work: () => void) => void {
  if (trace === undefined) return work => work()
  const mine = trace
  const { cells } = mine
  const text = JSON.stringify({ plugin: plugin.plugin, ...(plugin.instance === undefined ? {} : { instance: plugin.instance }) })
  const known = mine.plugins.indexOf(text) + 1
  const whose = known || mine.plugins.push(text)
  mine.thread ??= startWatcher(mine)
  if (!known) mine.thread.postMessage(text)
  const clear = () => Atomics.store(cells, WHOSE, 0)
  const forget = () => {
    mine.last = 0
  }
  return work => {
    Atomics.add(cells, COUNT, 1)
    Atomics.store(cells, WHOSE, whose)
    if (mine.last === 0) setImmediate(forget)
    mine.last = whose
    // The first tick after all microtasks of this turn.
    queueMicrotask(() => process.nextTick(clear))
    work()
  }
}

function startWatcher({ cells, path }: Trace): Worker {
  const workerData: WatcherData = { cells, path }
  const thread = new Worker(WATCHER, { workerData, env: {}, name: 'svc-watcher', resourceLimits: { maxOldGenerationSizeMb: 16 } })
  // Without the thread, no plugin is blamed for hangs or lack of memory.
  thread.on('error', () => {})
  thread.unref()
  return thread
}
