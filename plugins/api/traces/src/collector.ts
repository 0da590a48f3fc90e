import { redactText, type Span, type SpanContent } from '@svc/core'
import { keyOf, type RootRecord, type StoredSpan, storedSpan } from './space.ts'

/** What the collector hands to the store. */
export interface SpanSink {
  root(root: RootRecord): void
  spans(key: string, spans: readonly StoredSpan[]): void
}

export interface CollectorOptions {
  readonly worker: string
  readonly sink: SpanSink
  /** `performance.now()` */
  readonly now?: () => number
}

/** Counts of this worker. */
interface CollectorCounts {
  /** Traces that were kept. */
  readonly kept: number
  /** Traces that were not kept, because there were too many. */
  readonly skipped: number
  /** Spans that were dropped, because the memory for them was full or their trace had ended. */
  readonly dropped: number
}

/** Gathers the spans of this worker by trace. */
export interface Collector {
  readonly take: (spans: readonly Span[]) => void
  readonly content: (contents: readonly SpanContent[]) => void
  /** Writes the spans of traces that have run for long, and forgets what is over. Call it each second. */
  readonly sweep: () => void
  counts(): CollectorCounts
}

/** Spans in memory, over all traces. */
const MOST_SPANS = 20_000
/** Failed roots that are kept without their spans. */
const FAILED_PER_SECOND = 20
/** Traces in memory. */
const MOST_GROUPS = 20_000
/** A trace that runs for longer, or has more spans, is written before it ends. */
const EARLY_MS = 5_000
const EARLY_SPANS = 500
/** How long a trace that has ended takes further spans. */
const LATE_MS = 2_000
/** Characters of the content of one attribute. */
const LONGEST_CONTENT = 64 * 1024
/** Content in memory, in characters. */
const MOST_CONTENT = 32 * 1024 * 1024
/** Models that a root names. */
const MOST_MODELS = 8

/** The content of a span that has not arrived yet. */
interface HeldContent {
  readonly text: NonNullable<StoredSpan['c']>
  readonly size: number
  readonly since: number
}

/** A trace of one principal: callers choose ids of traces, so that those of two principals can be equal. */
interface Group {
  readonly principal: string
  /** Roots that have not ended. */
  readonly open: Map<string, Span>
  /** The root in whose stream the spans are. */
  first: Span | undefined
  spans: Span[]
  /** Sums over the spans. */
  count: number
  errors: number
  input: number
  output: number
  /** Of the calls of models with a price. */
  cost: number | undefined
  size: number
  readonly models: Set<string>
  conversation: string | undefined
  /** Whether a part of it is in the store. */
  isStored: boolean
  /** When it began; when its last root ended. */
  readonly since: number
  over: number | undefined
}

export function createCollector(options: CollectorOptions): Collector {
  return new GroupCollector(options)
}

class GroupCollector implements Collector {
  readonly #worker: string
  readonly #sink: SpanSink
  readonly #now: () => number
  readonly #groups = new Map<string, Group>()
  readonly #contents = new Map<string, HeldContent>()
  readonly #failed: ReturnType<typeof createBucket>
  /** Spans and characters of content in memory. */
  #held = 0
  #contentSize = 0
  #counts = { kept: 0, skipped: 0, dropped: 0 }

  constructor({ worker, sink, now = () => performance.now() }: CollectorOptions) {
    this.#worker = worker
    this.#sink = sink
    this.#now = now
    this.#failed = createBucket(FAILED_PER_SECOND, now)
  }

  readonly take = (spans: readonly Span[]): void => spans.forEach(span => this.#take(span))

  readonly content = (more: readonly SpanContent[]): void => {
    for (const { spanId, content } of more) {
      const text = textsOf(content)
      const size = Object.values(text).reduce((sum, own) => sum + own.length, 0)
      const before = this.#contents.get(spanId)
      if (this.#contentSize + size > MOST_CONTENT) continue
      this.#contentSize += size
      this.#contents.set(spanId, { text: { ...before?.text, ...text }, size: (before?.size ?? 0) + size, since: this.#now() })
    }
  }

  readonly sweep = (): void => {
    const time = this.#now()
    for (const [key, group] of this.#groups) {
      if (group.over === undefined) {
        if (time - group.since > EARLY_MS && (!group.isStored || group.spans.length > 0)) this.#writeEarly(group)
      } else if (time - group.over > LATE_MS) {
        this.#write(group)
        this.#groups.delete(key)
      }
    }
    // their spans were not kept
    for (const [id, content] of this.#contents) if (time - content.since > EARLY_MS + LATE_MS) this.#dropContent(id, content)
  }

  counts(): CollectorCounts {
    return { ...this.#counts }
  }

  #take(span: Span) {
    const { traceId, principal } = span
    if (!span.isSampled) return this.#takeAlone(span)
    const first = this.#groups.get(traceId)
    // the id alone is the usual key: joining two texts for each span costs more than the rest
    const key = first === undefined || first.principal === principal ? traceId : traceId + principal
    const group = this.#groupOf(key, span)
    if (!group) return void (this.#counts.dropped += 1)
    if (span.endMs === undefined) begin(group, span)
    else if (group.open.has(span.spanId)) this.#end(group, span)
    else this.#add(group, span)
    if (group.spans.length >= EARLY_SPANS) this.#writeEarly(group)
  }

  /** A root without further spans is kept only if it has failed. */
  #takeAlone(root: Span) {
    if (root.status !== 'error' || !this.#failed.take()) return void (this.#counts.skipped += 1)
    this.#end({ ...newGroup(root.principal, this.#now()), first: root }, root)
  }

  #groupOf(key: string, { principal, endMs }: Span): Group | undefined {
    const group = this.#groups.get(key)
    if (group || endMs !== undefined || this.#groups.size >= MOST_GROUPS) return group
    const made = newGroup(principal, this.#now())
    this.#groups.set(key, made)
    return made
  }

  #end(group: Group, root: Span) {
    group.open.delete(root.spanId)
    this.#add(group, root)
    this.#counts.kept += 1
    group.isStored = true
    this.#write(group)
    this.#sink.root(rootOf(root, group, this.#worker))
    restart(group)
    if (group.open.size === 0) group.over = this.#now()
  }

  #add(group: Group, span: Span) {
    if (this.#held >= MOST_SPANS) return void (this.#counts.dropped += 1)
    group.spans.push(span)
    this.#held += 1
    sumUp(group, span)
  }

  /** Writes the spans so far, and the roots as they are: the store shows that they run. */
  #writeEarly(group: Group) {
    this.#write(group)
    group.isStored = true
    for (const root of group.open.values()) this.#sink.root(rootOf(root, group, this.#worker))
  }

  #write(group: Group) {
    if (group.spans.length === 0 || !group.first) return
    const stored = group.spans.map(span => this.#storedOf(span))
    for (const span of stored) group.size += JSON.stringify(span).length
    this.#sink.spans(keyOf(group.first.traceId, group.first.spanId), stored)
    this.#held -= group.spans.length
    group.spans = []
  }

  #storedOf(span: Span): StoredSpan {
    const content = this.#contents.get(span.spanId)
    if (content) this.#dropContent(span.spanId, content)
    return storedSpan(span, content?.text)
  }

  #dropContent(id: string, content: HeldContent) {
    this.#contents.delete(id)
    this.#contentSize -= content.size
  }
}

function begin(group: Group, root: Span) {
  if (group.open.size === 0) group.first = root
  group.over = undefined
  group.open.set(root.spanId, root)
}

const newGroup = (principal: string, since: number): Group => ({
  principal,
  open: new Map(),
  first: undefined,
  spans: [],
  count: 0,
  errors: 0,
  input: 0,
  output: 0,
  cost: undefined,
  size: 0,
  models: new Set(),
  conversation: undefined,
  isStored: false,
  since,
  over: undefined,
})

/** The sums are those of one root: the next one of the same trace begins anew. */
function restart(group: Group): void {
  Object.assign(group, { count: 0, errors: 0, input: 0, output: 0, cost: undefined, size: 0 })
}

const numberOf = (value: unknown) => (typeof value === 'number' ? value : 0)
const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)

function sumUp(group: Group, { status, attributes }: Span): void {
  group.count += 1
  if (status === 'error') group.errors += 1
  const model = textOf(attributes['gen_ai.response.model'])
  if (model !== undefined) {
    group.input += numberOf(attributes['gen_ai.usage.input_tokens'])
    group.output += numberOf(attributes['gen_ai.usage.output_tokens'])
    const cost = attributes['svc.cost']
    if (typeof cost === 'number') group.cost = (group.cost ?? 0) + cost
    if (group.models.size < MOST_MODELS) group.models.add(model)
  }
  group.conversation ??= textOf(attributes['gen_ai.conversation.id'])
}

const LONGEST_NAME = 200

function rootOf(root: Span, group: Group, worker: string): RootRecord {
  const { traceId, spanId, parentSpanId, name, kind, startMs, endMs, status, reason, principal, requestId, plugin } = root
  const run = textOf(root.attributes['svc.run.id'])
  return {
    trace: traceId,
    span: spanId,
    ...(parentSpanId === undefined ? {} : { parent: parentSpanId }),
    name: name.slice(0, LONGEST_NAME),
    kind,
    start: startMs,
    ...(endMs === undefined ? {} : { end: endMs }),
    status: endMs === undefined ? 'unset' : status,
    ...(reason === undefined ? {} : { reason: reason.slice(0, LONGEST_NAME) }),
    principal,
    request: requestId,
    ...(group.conversation === undefined ? {} : { conversation: group.conversation }),
    ...(run === undefined ? {} : { run }),
    plugin,
    worker,
    models: [...group.models],
    input: group.input,
    output: group.output,
    ...(group.cost === undefined ? {} : { cost: group.cost }),
    spans: group.count,
    errors: group.errors,
    size: group.size,
  }
}

/** Content as JSON texts, without values of secrets, and not longer than the limit. */
function textsOf(content: SpanContent['content']): { readonly [attribute: string]: string } {
  return Object.fromEntries(
    Object.entries(content).flatMap(([name, value]) => {
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      return text === undefined ? [] : [[name, redactText(text).slice(0, LONGEST_CONTENT).toWellFormed()]]
    })
  )
}

/** A token bucket: it lets `perSecond` pass on average, and ten seconds' worth at once after a pause. */
function createBucket(perSecond: number, now: () => number) {
  const most = perSecond * 10
  let [left, at] = [most, now()]
  return {
    take(): boolean {
      const time = now()
      left = Math.min(most, left + ((time - at) / 1_000) * perSecond)
      at = time
      if (left < 1) return false
      left -= 1
      return true
    },
  }
}
