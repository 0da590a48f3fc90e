import type { ReplyOf } from '@svc/client'

export type Span = ReplyOf<'get', '/api/v1/traces/{id}'>['spans'][number]

/** A span in the tree of its trace. */
export interface Row {
  readonly span: Span
  readonly depth: number
  /** Milliseconds since the beginning of the trace. */
  readonly start: number
  readonly duration: number
}

const msOf = (nano: string) => Number(BigInt(nano) / 1_000n) / 1_000

/** The spans in the order of a tree, without recursion: a trace can be 10,000 deep. A span whose parent is not there yet is a root. */
export function rowsOf(spans: readonly Span[]): readonly Row[] {
  const known = new Set(spans.map(span => span.span_id))
  const children = new Map<string | undefined, Span[]>()
  for (const span of spans) {
    const parent = span.parent_span_id !== undefined && known.has(span.parent_span_id) ? span.parent_span_id : undefined
    const siblings = children.get(parent)
    if (siblings) siblings.push(span)
    else children.set(parent, [span])
  }
  // the latest last, so that the earliest comes off the stack first
  for (const siblings of children.values()) siblings.sort((a, b) => msOf(b.start_time_unix_nano) - msOf(a.start_time_unix_nano))
  const begin = Math.min(
    ...spans.slice(0, 1).map(span => msOf(span.start_time_unix_nano)),
    ...(children.get(undefined) ?? []).map(span => msOf(span.start_time_unix_nano))
  )
  const stack = (children.get(undefined) ?? []).map(span => ({ span, depth: 0 }))
  const rows: Row[] = []
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { span, depth } = next
    rows.push({ span, depth, start: msOf(span.start_time_unix_nano) - begin, duration: span.duration_ms ?? 0 })
    for (const child of children.get(span.span_id) ?? []) stack.push({ span: child, depth: depth + 1 })
  }
  return rows
}

/** The rows whose name, plugin or error has all words. */
export function foundRows(rows: readonly Row[], words: string): readonly Row[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  if (wanted.length === 0) return rows
  return rows.filter(({ span: { name, plugin, status } }) => {
    const text = `${name} ${plugin} ${status.message ?? ''}`.toLowerCase()
    return wanted.every(word => text.includes(word))
  })
}
