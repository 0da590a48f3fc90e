import { matchesPattern } from '../loading/manifest.ts'
import { nameTaken } from './errors.ts'
import type { AnySlot, SlotChange, SlotView, CallContext, TracedCalls } from './token.ts'
import type { OpenSpan, Tracer } from './spans.ts'

interface SlotEntry {
  readonly item: unknown
  readonly plugin: string
  readonly position: number
}

/** One slot of a host. */
export interface Slot {
  readonly token: AnySlot
  readonly view: SlotView<unknown>
  /**
   * Adds an item and returns its removal. Items with a `position` in the configuration come first, in that order, whenever they
   * are added. Throws NAME_TAKEN.
   */
  add(name: string, item: unknown, plugin: string, place?: number): () => void
  /** Reports pending changes now. */
  flush(): Promise<void>
}

/** Creates a slot. `notify` receives changes, gathered to one event per turn of the event loop. */
export function createSlot(token: AnySlot, notify: (change: SlotChange) => Promise<unknown>): Slot {
  const held = new Map<string, SlotEntry>()
  let version = 0
  let pending: { added: Set<string>; removed: Set<string> } | undefined
  const flush = async () => {
    if (!pending) return
    const { added, removed } = pending
    pending = undefined
    await notify({ slot: token.name, added: [...added], removed: [...removed], version })
  }
  const changed = (name: string, to: 'added' | 'removed') => {
    version++
    if (!pending) {
      pending = { added: new Set(), removed: new Set() }
      setImmediate(() => void flush())
    }
    noteChange(pending, name, to)
  }
  return {
    token,
    view: viewOf(held, () => version),
    flush,
    add(name, item, plugin, place = Number.MAX_SAFE_INTEGER) {
      const other = held.get(name)
      if (other) throw nameTaken(plugin, token.name, name, other.plugin)
      const mine: SlotEntry = { item, plugin, position: place }
      const later = [...held].filter(([, slotEntry]) => slotEntry.position > place)
      for (const [next] of later) held.delete(next)
      for (const [next, slotEntry] of [[name, mine] as const, ...later]) held.set(next, slotEntry)
      changed(name, 'added')
      return () => {
        if (held.get(name) !== mine) return
        held.delete(name)
        changed(name, 'removed')
      }
    },
  }
}

// An item that was added and removed between two events is not reported. One that was removed and added again is reported as
// both.
function noteChange(pending: { added: Set<string>; removed: Set<string> }, name: string, to: 'added' | 'removed') {
  if (to === 'added') return void pending.added.add(name)
  const unseen = pending.added.delete(name) && !pending.removed.has(name)
  if (!unseen) pending.removed.add(name)
}

/** A view of the items that a plugin was granted by name. Other items do not exist in it. */
export function grantedView(view: SlotView<unknown>, granted: readonly string[]): SlotView<unknown> {
  const isGranted = (name: string) => granted.some(word => matchesPattern(word, name))
  const names = () => view.names().filter(isGranted)
  return Object.freeze({
    get version() {
      return view.version
    },
    get size() {
      return names().length
    },
    get: (name: string) => (isGranted(name) ? view.get(name) : undefined),
    has: (name: string) => isGranted(name) && view.has(name),
    names,
    entries: () => view.entries().filter(([name]) => isGranted(name)),
    owner: (name: string) => (isGranted(name) ? view.owner(name) : undefined),
  })
}

/** The part of a change that a plugin with single items of the slot sees. */
export function grantedChange({ added, removed, ...change }: SlotChange, granted: readonly string[]): SlotChange {
  const isGranted = (name: string) => granted.some(word => matchesPattern(word, name))
  return { ...change, added: added.filter(isGranted), removed: removed.filter(isGranted) }
}

function viewOf(held: Map<string, SlotEntry>, version: () => number): SlotView<unknown> {
  return Object.freeze({
    get version() {
      return version()
    },
    get size() {
      return held.size
    },
    get: (name: string) => held.get(name)?.item,
    has: (name: string) => held.has(name),
    names: () => [...held.keys()],
    entries: () => [...held].map(([name, slotEntry]): [string, unknown] => [name, slotEntry.item]),
    owner: (name: string) => held.get(name)?.plugin,
  })
}

/** Statistics of the calls to one plugin's contributions to a slot, by method. */
export interface CallStats {
  readonly plugin: string
  readonly slot: string
  readonly method: string
  readonly calls: number
  readonly errors: number
  /** Total duration of calls in milliseconds. Streams are not timed: their duration depends on the reader. */
  readonly ms: number
}
type Stats = { calls: number; errors: number; ms: number }
type Method = (...args: unknown[]) => unknown

/** A contribution: its name in the slot, and its plugin. */
interface Contribution {
  readonly name: string
  readonly plugin: string
}

export interface CallCounter {
  /** Returns a copy of the item whose calls are counted and, as its slot says, traced. */
  item(token: AnySlot, item: unknown, by: Contribution): unknown
  stats(): CallStats[]
}

export interface CounterOptions {
  readonly accounting: boolean
  readonly tracer: Pick<Tracer, 'isOn' | 'start'>
}

/** Counts calls of slot items, as the hooks count calls of taps. */
export function createCallCounter({ accounting, tracer }: CounterOptions): CallCounter {
  const all = new Map<string, CallStats & Stats>()
  const statsOf = (plugin: string, slot: string, method: string) => {
    const key = `${plugin} ${slot}.${method}`
    const there = all.get(key) ?? { plugin, slot, method, calls: 0, errors: 0, ms: 0 }
    all.set(key, there)
    return there
  }
  return {
    stats: () => [...all.values()].map(item => ({ ...item })),
    item({ name, methods, local, traced }, item, by) {
      // A local item is passed on unchanged, because its consumer can compare it by identity.
      if (local || typeof item !== 'object' || item === null || (!accounting && !traced)) return item
      const counted = Object.entries(methods).flatMap(([word, kind]): [string, Method][] => {
        const method: unknown = Reflect.get(item, word)
        if (typeof method !== 'function') return []
        const plain: Method = (...args) => Reflect.apply(method, item, args)
        const spanned = traced?.methods.includes(word) ? tracedMethod(plain, kind, traced, by, tracer) : plain
        if (!accounting) return [[word, spanned]]
        const stats = statsOf(by.plugin, name, word)
        return [[word, kind === 'call' ? timedCall(spanned, stats) : countedStream(spanned, stats)]]
      })
      return Object.freeze({ ...item, ...Object.fromEntries(counted) })
    },
  }
}

function timedCall(method: Method, stats: Stats): Method {
  return (...args) => {
    const start = performance.now()
    const ended = () => void (stats.ms += performance.now() - start)
    const failed = () => {
      ended()
      stats.errors++
    }
    stats.calls++
    try {
      const answer = method(...args)
      // Counts on a separate branch of the promise, so that the caller does not wait for the counting.
      if (answer instanceof Promise) answer.then(ended, failed)
      else ended()
      return answer
    } catch (error) {
      failed()
      throw error
    }
  }
}

/** Counts only the start of a stream: a check of each item would cost more than most items. */
function countedStream(method: Method, stats: Stats): Method {
  return (...args) => {
    stats.calls++
    return method(...args)
  }
}

/** A method whose calls are spans, while a plugin takes spans. */
function tracedMethod(
  method: Method,
  kind: 'call' | 'stream',
  traced: TracedCalls,
  { name, plugin }: Contribution,
  tracer: CounterOptions['tracer']
): Method {
  const title = `${traced.span} ${name}`
  const attributes = { ...traced.attributes, [traced.attribute]: name, 'svc.plugin': plugin }
  return (...args) => {
    const ctx = args.at(-1) as CallContext | undefined
    if (!tracer.isOn || !(ctx?.signal instanceof AbortSignal)) return method(...args)
    const { content } = traced
    const start = () => {
      const span = tracer.start(plugin, title, ctx, { attributes })
      if (content) span.content(() => ({ [content.argument]: args[0] }))
      return span
    }
    const call = (span: OpenSpan) => method(...args.slice(0, -1), span.ctx)
    return kind === 'call' ? spannedCall(call, start(), traced) : spannedStream(call, start, traced)
  }
}

/** Records an answer, if content is recorded. */
function keepAnswer(span: OpenSpan, { content }: TracedCalls, answer: unknown): void {
  if (content && answer !== undefined) span.content(() => ({ [content.answer]: answer }))
}

function spannedCall(call: (span: OpenSpan) => unknown, span: OpenSpan, traced: TracedCalls): unknown {
  const { failed } = traced
  const succeeded = (answer: unknown) => {
    if (failed !== undefined && Object(answer)[failed] === true) span.fail('failed')
    keepAnswer(span, traced, answer)
    span.end()
  }
  const broke = (error: unknown) => {
    span.fail(error)
    span.end()
  }
  try {
    const answer = call(span)
    if (answer instanceof Promise) answer.then(succeeded, broke)
    else succeeded(answer)
    return answer
  } catch (error) {
    broke(error)
    throw error
  }
}

/** The span lasts from the first read to the end of the stream, or until its reader leaves. */
async function* spannedStream(
  open: (span: OpenSpan) => unknown,
  start: () => OpenSpan,
  traced: TracedCalls
): AsyncGenerator<unknown> {
  const span = start()
  let last: unknown
  try {
    if (!traced.content) return yield* open(span) as AsyncIterable<unknown>
    for await (const item of open(span) as AsyncIterable<unknown>) yield (last = item)
  } catch (error) {
    span.fail(error)
    throw error
  } finally {
    // a reader can leave after the item that it has waited for
    keepAnswer(span, traced, last)
    span.end()
  }
}
