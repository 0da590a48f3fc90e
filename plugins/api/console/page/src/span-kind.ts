interface KnownSpan {
  readonly kind: string
  readonly attributes: Readonly<Record<string, unknown>>
}

/** What a span is about, in the order of the legend. */
export const SPAN_KINDS = ['request', 'turn', 'step', 'model', 'tool', 'hook', 'other'] as const
export type SpanKind = (typeof SPAN_KINDS)[number]

const OPERATIONS: ReadonlyMap<unknown, SpanKind> = new Map([
  ['chat', 'model'],
  ['embeddings', 'model'],
  ['execute_tool', 'tool'],
  ['invoke_agent', 'turn'],
  ['invoke_workflow', 'step'],
])

/** The kind of a span, by the attributes that svc gives its spans. */
export function spanKindOf({ kind, attributes }: KnownSpan): SpanKind {
  const known = OPERATIONS.get(attributes['gen_ai.operation.name'])
  if (known) return known
  if ('svc.hook' in attributes) return 'hook'
  if ('svc.workflow.step' in attributes) return 'step'
  if ('gen_ai.tool.name' in attributes) return 'tool'
  return kind === 'server' || kind === 'consumer' ? 'request' : 'other'
}
