import type { Span, SpanAttributes, SpanEvent, SpanKind, SpanValue } from '@svc/core'
import type { Json, Space, StoreOp } from '@svc/core/contracts'

/** The roots of traces: requests, runs, jobs. */
export const ROOTS = 'trace_roots'
/** Their spans, in lists; stream: the key of the root. */
export const SPANS = 'trace_spans'

export const SPACE: Space = {
  name: 'traces',
  version: 1,
  collections: {
    [ROOTS]: {
      indexes: {
        by_start: ['start'],
        by_principal: ['principal', 'start'],
        by_conversation: ['conversation', 'start'],
        by_run: ['run', 'start'],
        by_request: ['request', 'start'],
        by_trace: ['trace', 'start'],
      },
    },
  },
  logs: [SPANS],
}

/** A stored root with the sums of its spans. Times are Unix milliseconds, with fractions. */
export interface RootRecord {
  readonly trace: string
  readonly span: string
  readonly parent?: string
  readonly name: string
  readonly kind: SpanKind
  readonly start: number
  /** Absent while it runs, or after its worker died. */
  readonly end?: number
  readonly status: Span['status']
  readonly reason?: string
  readonly principal: string
  readonly request: string
  readonly conversation?: string
  readonly run?: string
  readonly plugin: string
  readonly worker: string
  readonly models: readonly string[]
  readonly input: number
  readonly output: number
  /** Absent if no model had a price. */
  readonly cost?: number
  readonly spans: number
  readonly errors: number
  /** Characters of its spans as JSON. */
  readonly size: number
}

/** A span as the log has it. */
export interface StoredSpan {
  readonly s: string
  readonly p?: string
  readonly n: string
  readonly k?: SpanKind
  readonly a: number
  readonly e?: number
  readonly f?: string
  readonly x?: SpanAttributes
  readonly v?: readonly SpanEvent[]
  readonly g: string
  readonly c?: { readonly [attribute: string]: string }
}

export const keyOf = (trace: string, span: string): string => `${trace}.${span}`

export const putRoot = (root: RootRecord): StoreOp => ({
  op: 'put',
  collection: ROOTS,
  key: keyOf(root.trace, root.span),
  value: root as unknown as Json,
})

export const appendSpans = (key: string, spans: readonly StoredSpan[]): StoreOp => ({
  op: 'append',
  log: SPANS,
  id: key,
  values: [spans as unknown as Json],
})

export const deleteRoot = (key: string): StoreOp[] => [
  { op: 'delete', collection: ROOTS, key },
  { op: 'drop', log: SPANS, id: key },
]

const LONGEST_NAME = 200
const LONGEST_VALUE = 4_000
const MOST_ATTRIBUTES = 64

/** Shortens what plugins and callers chose, so that no span is large. */
export function storedSpan(span: Span, content?: StoredSpan['c']): StoredSpan {
  const { spanId, parentSpanId, name, kind, startMs, endMs, status, reason, attributes, events, plugin } = span
  return {
    s: spanId,
    ...(parentSpanId === undefined ? {} : { p: parentSpanId }),
    n: name.slice(0, LONGEST_NAME),
    ...(kind === 'internal' ? {} : { k: kind }),
    a: startMs,
    ...(endMs === undefined ? {} : { e: endMs }),
    ...(status === 'error' ? { f: (reason ?? '_OTHER').slice(0, LONGEST_NAME) } : {}),
    ...attributesOf(attributes),
    ...(events
      ? {
          v: events.map(event => ({
            ...event,
            name: event.name.slice(0, LONGEST_NAME),
            attributes: attributesOf(event.attributes).x ?? {},
          })),
        }
      : {}),
    g: plugin,
    ...(content ? { c: content } : {}),
  }
}

function attributesOf(attributes: SpanAttributes): Pick<StoredSpan, 'x'> {
  const kept: [string, SpanValue][] = []
  for (const [name, value] of Object.entries(attributes).slice(0, MOST_ATTRIBUTES)) {
    if (value === undefined) continue
    const short = typeof value === 'string' ? value.slice(0, LONGEST_VALUE).toWellFormed() : value
    kept.push([name.slice(0, LONGEST_NAME), short])
  }
  return kept.length === 0 ? {} : { x: Object.fromEntries(kept) }
}
