import { lazy, Suspense } from 'react'
import { Json } from '../message.tsx'
import { spanKindOf } from '../span-kind.ts'
import { Badge, costOf, durationOf } from '../states.tsx'
import { parsed, spanResult, textsOf } from '../tool-value.ts'
import type { Span } from '../trace-rows.ts'
import { visible } from '../visible-text.ts'

const ToolResult = lazy(() => import('../tool-result.tsx'))

/** The result of a tool, if the server has recorded it (`traces.content`). Its text is among the attributes. */
function SpanResult({ span: { attributes, plugin, span_id: id } }: { readonly span: Span }) {
  const tool = attributes['gen_ai.tool.name']
  const result = spanResult(attributes['gen_ai.tool.call.result'])
  if (typeof tool !== 'string' || !result) return null
  const input = parsed(String(attributes['gen_ai.tool.call.arguments']))
  return (
    <Suspense>
      <ToolResult
        key={id}
        tool={tool}
        input={input}
        result={result}
        plugin={plugin}
        text={<Json value={textsOf(result.content)} label={`Result of ${visible(tool)}, as text`} />}
        isTextElsewhere
      />
    </Suspense>
  )
}

export function SpanDetail({ span }: { readonly span: Span }) {
  const { name, plugin, status, attributes, events, duration_ms: duration, cost } = span
  return (
    <section className="span-detail" aria-label="The selected span">
      <div className="row">
        <h3 className="section-title">{name}</h3>
        <Badge tone={status.code === 'error' ? 'bad' : 'plain'}>{status.message ?? spanKindOf(span)}</Badge>
        <span className="muted small">
          {plugin}
          {duration !== undefined && `, ${durationOf(duration)}`}
          {cost !== undefined && `, cost ${costOf(cost)}`}
        </span>
      </div>
      <Json
        value={
          events.length > 0
            ? { ...attributes, events: events.map(({ name, attributes }) => ({ name, ...attributes })) }
            : attributes
        }
        label={`Attributes of ${name}`}
      />
      <SpanResult span={span} />
    </section>
  )
}
