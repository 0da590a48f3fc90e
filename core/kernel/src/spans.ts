import type { CallContext } from './token.ts'

/** The value of an attribute. */
export type SpanValue = string | number | boolean | readonly string[]
/** Attributes by name; OpenTelemetry's semantic conventions name them. Those that are undefined are left out. */
export interface SpanAttributes {
  readonly [name: string]: SpanValue | undefined
}

/** Something that happened during a span. */
export interface SpanEvent {
  readonly name: string
  /** Unix milliseconds, with fractions. */
  readonly atMs: number
  readonly attributes: SpanAttributes
}

/** A timed operation, in the span model of OpenTelemetry. */
export interface Span {
  /** 16 bytes in hexadecimal. */
  readonly traceId: string
  /** 8 bytes in hexadecimal. */
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: SpanKind
  /** Unix milliseconds, with fractions. */
  readonly startMs: number
  /** `undefined` for a root that has only started: it is reported again when it ends. */
  readonly endMs: number | undefined
  readonly status: 'unset' | 'error'
  /** Why it failed: the code of the error. */
  readonly reason: string | undefined
  readonly attributes: SpanAttributes
  readonly events: readonly SpanEvent[] | undefined
  /** The plugin that made it (the instrumentation scope of OpenTelemetry), or whose tap or slot item it times. */
  readonly plugin: string
  /** The id of the principal on whose behalf the operation runs. */
  readonly principal: string
  readonly requestId: string
  /** It is the first span of its trace in this process: a request, a run, a job. */
  readonly isRoot: boolean
  /** False for a root without further spans: there were too many traces. It is reported only when it ends. */
  readonly isSampled: boolean
}
export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer'

/** What an operation read or returned: messages, arguments, results. Only for those who ask for it, as it holds what people wrote. */
export interface SpanContent {
  readonly traceId: string
  readonly spanId: string
  readonly principal: string
  readonly content: { readonly [attribute: string]: unknown }
}

export interface SpanOptions {
  readonly kind?: SpanKind
  readonly attributes?: SpanAttributes
  /** The span is the root of a request, a run or a job, even if the context has a trace. */
  readonly root?: boolean
  /** When it started, as `performance.now()`. Default: now. */
  readonly startedAt?: number
}

/** A span that has not ended yet. Without tracing, it does nothing. */
export interface OpenSpan {
  /** The context for work within the span: the `traceparent` in it names the span as parent. */
  readonly ctx: CallContext
  /** Whether the span is recorded. Otherwise attributes need not be computed. */
  readonly isRecording: boolean
  set(attributes: SpanAttributes): void
  event(name: string, attributes?: SpanAttributes): void
  /** Records content, if a plugin takes it; call it before `end`. The values must not change later. */
  content(make: () => SpanContent['content']): void
  /** Marks the span as failed, with the code of the error. */
  fail(error: unknown): void
  /** Only the first call counts. */
  end(): void
}

/** Starts a span, as `Scope.span`. */
export type StartSpan = (name: string, ctx: CallContext, options?: SpanOptions) => OpenSpan

/** A tap that has ended. */
interface TimedTap {
  readonly plugin: string
  readonly hook: string
  /** `performance.now()` at its start and end. */
  readonly began: number
  readonly ended: number
  readonly error?: unknown
}

/** Makes the spans of a host. */
export interface Tracer {
  /** Whether a plugin takes spans. */
  readonly isOn: boolean
  /** Sets who takes the spans. Until then none are made. */
  connect(outlet: SpanOutlet): void
  /** `Scope.span` of a plugin. */
  starter(plugin: string): StartSpan
  start(plugin: string, name: string, ctx: CallContext, options?: SpanOptions): OpenSpan
  tap(tap: TimedTap, ctx: CallContext): void
}

/** Who takes the spans of a host: the taps of its hooks. */
interface SpanOutlet {
  readonly isOn: () => boolean
  readonly isContentOn: () => boolean
  readonly spans: (spans: readonly Span[]) => void
  readonly contents: (contents: readonly SpanContent[]) => void
}

/** Shorter taps make no span: they would cost more than they take. The metrics count them. */
const SHORTEST_TAP_MS = 0.1
/** A span keeps so many events, like the SDKs of OpenTelemetry. */
const MOST_EVENTS = 128

const NO_OUTLET: SpanOutlet = { isOn: () => false, isContentOn: () => false, spans: () => {}, contents: () => {} }

/**
 * Creates a tracer. It reports spans together, every few milliseconds: a call of the hook for each would cost more than the
 * spans. `perSecond`: traces per second on average, with their spans; of further ones there is only the root.
 */
export function createTracer(perSecond: number): Tracer {
  let outlet = NO_OUTLET
  const isSampled = createSampler(perSecond)
  let ended: Span[] = []
  let content: SpanContent[] = []
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    const [some, held] = [ended, content]
    ended = []
    content = []
    if (held.length > 0) outlet.contents(held)
    outlet.spans(some)
  }
  const sink: Sink = {
    report(span) {
      ended.push(span)
      timer ??= setTimeout(flush, REPORT_MS).unref()
      if (ended.length >= MOST_TOGETHER) flush()
    },
    content: held => void content.push(held),
    isContentOn: () => outlet.isContentOn(),
    isSampled,
  }
  const start: Tracer['start'] = (plugin, name, ctx, options) =>
    outlet.isOn() && (options?.root || !isLeftOut(ctx)) ? new RecordedSpan(sink, plugin, name, ctx, options) : noSpan(ctx)
  return {
    get isOn() {
      return outlet.isOn()
    },
    connect: to => void (outlet = to),
    start,
    starter: plugin => (name, ctx, options) => start(plugin, name, ctx, options),
    tap({ plugin, hook, began, ended: end, error }, ctx) {
      if (ctx.trace === undefined || isLeftOut(ctx) || !outlet.isOn() || (end - began < SHORTEST_TAP_MS && error === undefined))
        return
      const attributes = { 'svc.plugin': plugin, 'svc.hook': hook }
      const span = new RecordedSpan(sink, plugin, `tap ${hook}`, ctx, { startedAt: began, attributes })
      if (error !== undefined) span.fail(error)
      span.end(end)
    },
  }
}

/** Milliseconds after which spans are reported, and how many are reported at once. */
const REPORT_MS = 20
const MOST_TOGETHER = 500

interface Sink {
  readonly report: (span: Span) => void
  readonly content: (content: SpanContent) => void
  readonly isContentOn: () => boolean
  readonly isSampled: () => boolean
}

/** Whether the trace of a context is not recorded: the flags of its `traceparent` say so. */
const isLeftOut = ({ trace }: CallContext) => trace !== undefined && trace.length === TRACE_LENGTH && trace.endsWith('-00')
const TRACE_LENGTH = 55

/** A token bucket: it lets `perSecond` pass on average, and ten seconds' worth at once after a pause. */
function createSampler(perSecond: number): () => boolean {
  const most = perSecond * 10
  let [left, at] = [most, performance.now()]
  return () => {
    const now = performance.now()
    left = Math.min(most, left + ((now - at) / 1_000) * perSecond)
    at = now
    if (left < 1) return false
    left -= 1
    return true
  }
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const TRACE = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}/

class RecordedSpan implements OpenSpan {
  readonly isRecording = true
  readonly ctx: CallContext
  readonly #sink: Sink
  /** The record that is reported: it is filled in, because a copy for each span would cost as much as the span. */
  readonly #span: Mutable<Span>
  #events: SpanEvent[] | undefined

  constructor(sink: Sink, plugin: string, name: string, ctx: CallContext, options: SpanOptions = {}) {
    const parent = ctx.trace !== undefined && TRACE.test(ctx.trace) ? ctx.trace : undefined
    const traceId = parent?.slice(3, 35) ?? randomHex(16)
    const spanId = randomHex(8)
    const isRoot = options.root === true || parent === undefined
    const isSampled = !isRoot || sink.isSampled()
    this.#sink = sink
    this.#span = {
      traceId,
      spanId,
      parentSpanId: parent?.slice(36, 52),
      name,
      kind: options.kind ?? 'internal',
      startMs: performance.timeOrigin + (options.startedAt ?? performance.now()),
      endMs: undefined,
      status: 'unset',
      reason: undefined,
      attributes: options.attributes ?? {},
      events: undefined,
      plugin,
      principal: ctx.principal.id,
      requestId: ctx.requestId,
      isRoot,
      isSampled,
    }
    this.ctx = { ...ctx, trace: `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}` }
    if (isRoot && isSampled) sink.report({ ...this.#span })
  }

  set(attributes: SpanAttributes): void {
    this.#span.attributes = { ...this.#span.attributes, ...attributes }
  }

  event(name: string, attributes: SpanAttributes = {}): void {
    this.#events ??= []
    if (this.#events.length < MOST_EVENTS)
      this.#events.push({ name, atMs: performance.timeOrigin + performance.now(), attributes })
    this.#span.events = this.#events
  }

  content(make: () => SpanContent['content']): void {
    if (!this.#span.isSampled || !this.#sink.isContentOn()) return
    const { traceId, spanId, principal } = this.#span
    this.#sink.content({ traceId, spanId, principal, content: make() })
  }

  fail(error: unknown): void {
    const reason = reasonOf(error)
    this.#span.status = 'error'
    this.#span.reason = reason
    this.set({ 'error.type': reason })
  }

  end(endedAt: number = performance.now()): void {
    if (this.#span.endMs !== undefined) return
    this.#span.endMs = performance.timeOrigin + endedAt
    this.#sink.report(this.#span)
  }
}

/** The code of an error, or its name. Messages can hold what people wrote. */
function reasonOf(error: unknown): string {
  if (typeof error === 'string') return error
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown }
  return typeof code === 'string' ? code : typeof name === 'string' ? name : '_OTHER'
}

const nothing = () => {}
/** The span of an operation that is not recorded. */
export const noSpan = (ctx: CallContext): OpenSpan => ({
  ctx,
  isRecording: false,
  set: nothing,
  event: nothing,
  content: nothing,
  fail: nothing,
  end: nothing,
})

const POOL = Buffer.alloc(4096)
let used = POOL.length

/** Random bytes in hexadecimal, from a pool: asking the system for each id costs more than the rest of a span. */
function randomHex(bytes: number): string {
  if (used + bytes > POOL.length) {
    process.getBuiltinModule('node:crypto').randomFillSync(POOL)
    used = 0
  }
  const text = POOL.toString('hex', used, used + bytes)
  used += bytes
  return text
}
