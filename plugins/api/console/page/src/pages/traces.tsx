import { Link, useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import type { ReplyOf } from '@svc/client'
import { type KeyboardEvent, lazy, Suspense, useEffect, useMemo, useRef } from 'react'
import { Chips } from '../address.tsx'
import { client } from '../api.ts'
import { Back, filtersOf, ListPage, Refresh, Search, TextFilter, useCursorList, useWhole } from '../list.tsx'
import { Json } from '../message.tsx'
import { traces } from '../router.tsx'
import { Badge, costOf, Count, durationOf, Empty, Failure, Loading, Time, type Tone } from '../states.tsx'
import { parsed, spanResult, textsOf } from '../tool-value.ts'
import { visible } from '../visible-text.ts'

type Listed = ReplyOf<'get', '/api/v1/traces'>['traces'][number]
type Read = ReplyOf<'get', '/api/v1/traces/{id}'>
type Span = Read['spans'][number]

const LIST_PAGE = 50
const SPAN_PAGE = 1_000

const STATES = [
  [undefined, 'All'],
  ['error', 'Errors'],
  ['running', 'Running'],
] as const

export function Traces() {
  const { id, q, status, conversation, request } = traces.useSearch()
  const filters = { q, status: STATES.map(([value]) => value).find(value => value === status), conversation, request }
  const list = useCursorList({
    key: ['traces', filters],
    read: (from, signal) =>
      client.get('/api/v1/traces', {
        query: { limit: LIST_PAGE, ...filtersOf(filters, 'q', 'status', 'conversation', 'request'), ...from },
        signal,
      }),
    itemsOf: page => page.traces,
  })
  return (
    <ListPage
      title="Traces"
      actions={<Refresh list={list} />}
      filters={
        <>
          <Search label="Search traces" />
          <Chips label="States" name="status" values={STATES} />
        </>
      }
      list={list}
      keyOf={item => item.span_id}
      entry={item => <Entry item={item} />}
      select={item => ({ id: item.trace_id, span: undefined, find: undefined })}
      isSelected={item => item.trace_id === id}
      empty={<Nothing isFiltered={Object.values(filters).some(Boolean)} />}
      hasSelection={id !== undefined}
      detail={
        id === undefined ? (
          <Empty title="Select a trace">
            Its spans appear here: turns, model calls, hooks, tools and steps, with their plugin.
          </Empty>
        ) : (
          <Trace key={id} id={id} />
        )
      }
    />
  )
}

const Nothing = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="Nothing found">
      <Link to="/traces">Show all traces</Link>
    </Empty>
  ) : (
    <Empty title="No traces">
      The server records traces with <code>traces.enabled: true</code> in its configuration.
    </Empty>
  )

const TONES: Readonly<Record<Listed['status'], Tone>> = { ok: 'ok', error: 'bad', running: 'accent' }

function Entry({ item }: { readonly item: Listed }) {
  return (
    <>
      <span className="row spread">
        <span className="list-name clip grow">{visible(item.name)}</span>
        {item.status !== 'ok' && <Badge tone={TONES[item.status]}>{item.error_code ?? item.status}</Badge>}
      </span>
      <span className="list-facts">
        <Time at={item.started_at} />
        <span>{item.duration_ms === null ? 'running' : durationOf(item.duration_ms)}</span>
        <span>
          <Count value={item.spans} /> {item.spans === 1 ? 'span' : 'spans'}
        </span>
        {item.cost !== null && <span>cost {costOf(item.cost)}</span>}
        {item.models.length > 0 && <span className="clip">{item.models.join(', ')}</span>}
      </span>
    </>
  )
}

function Trace({ id }: { readonly id: string }) {
  const read = useCursorList({
    key: ['trace', id],
    read: (from, signal) => client.get('/api/v1/traces/{id}', { path: { id }, query: { limit: SPAN_PAGE, ...from }, signal }),
    itemsOf: page => page.spans,
  })
  useWhole(read)
  const { pages } = read
  const { find = '' } = traces.useSearch()
  const all = useMemo(() => rowsOf(pages.flatMap(page => page.spans)), [pages])
  const rows = useMemo(() => foundRows(all, find), [all, find])
  const [first] = pages
  if (!first) return read.error ? <Failure error={read.error} onRetry={read.readAgain} /> : <Loading rows={8} />
  return (
    <>
      <TraceHead roots={first.roots} />
      {Boolean(read.error) && <Failure error={read.error} onRetry={read.readAgain} />}
      <div className="bar">
        <TextFilter label="Find spans" name="find" />
        <span className="muted small">
          <Count value={rows.length} /> of <Count value={all.length} />
        </span>
      </div>
      {rows.length === 0 ? <Empty title="No span has these words" /> : <Waterfall rows={rows} />}
    </>
  )
}

function TraceHead({ roots: [root] }: { readonly roots: readonly Listed[] }) {
  if (!root) return null
  const tokens = root.usage.input_tokens + root.usage.output_tokens
  return (
    <div className="bar">
      <Back />
      <div className="grow">
        <h2 className="section-title clip">{root.name}</h2>
        <p className="muted small">
          {root.duration_ms === null ? 'running' : durationOf(root.duration_ms)} · <Count value={root.spans} />{' '}
          {root.spans === 1 ? 'span' : 'spans'}
          {tokens > 0 && (
            <>
              {' · '}
              <Count value={tokens} /> tokens
            </>
          )}
          {root.cost !== null && ` · cost ${costOf(root.cost)}`}
          {' · '}
          {root.principal}
        </p>
      </div>
      <Badge tone={TONES[root.status]}>{root.error_code ?? root.status}</Badge>
      <Link className="button" to="/logs" search={{ request: root.request_id }}>
        Log
      </Link>
      {root.conversation_id && (
        <Link className="button" to="/conversations" search={{ id: root.conversation_id }}>
          Conversation
        </Link>
      )}
    </div>
  )
}

interface Row {
  readonly span: Span
  readonly depth: number
  /** Milliseconds since the beginning of the trace. */
  readonly start: number
  readonly duration: number
}

const msOf = (nano: string) => Number(BigInt(nano) / 1_000n) / 1_000

/** The spans in the order of a tree, without recursion: a trace can be 10,000 deep. A span whose parent is not there yet is a root. */
function rowsOf(spans: readonly Span[]): readonly Row[] {
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

const ROW = 32
/** Deeper spans are not indented further, so that their names stay visible. */
const DEEPEST = 12
const INDENT = 12

/** The rows whose name, plugin or error has all words. */
function foundRows(rows: readonly Row[], words: string): readonly Row[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean)
  if (wanted.length === 0) return rows
  return rows.filter(({ span: { name, plugin, status } }) => {
    const text = `${name} ${plugin} ${status.message ?? ''}`.toLowerCase()
    return wanted.every(word => text.includes(word))
  })
}

function Waterfall({ rows }: { readonly rows: readonly Row[] }) {
  const search = traces.useSearch()
  const navigate = useNavigate()
  const box = useRef<HTMLDivElement>(null)
  const at = Math.max(
    0,
    rows.findIndex(({ span }) => span.span_id === search.span)
  )
  const view = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 10 })
  const isShown = useRef(search.span === undefined)
  useEffect(() => {
    // the address names a span that can be far down, and that is not read yet
    if (isShown.current || rows[at]?.span.span_id !== search.span) return
    isShown.current = true
    view.scrollToIndex(at, { align: 'center' })
  }, [rows, at, search.span, view])
  const total = useMemo(() => rows.reduce((most, { start, duration }) => Math.max(most, start + duration), 1), [rows])
  const select = (index: number) => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, index))]
    if (row) void navigate({ to: '/traces', search: { ...search, span: row.span.span_id }, replace: true })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }
    const index = steps[event.key]
    if (index === undefined) return
    event.preventDefault()
    select(index)
    view.scrollToIndex(Math.min(rows.length - 1, Math.max(0, index)))
  }
  const selected = rows[at]
  return (
    <>
      <div
        className="reader-scroll waterfall"
        ref={box}
        role="listbox"
        aria-label="Spans"
        tabIndex={0}
        onKeyDown={onKeyDown}
        aria-activedescendant={selected && `span-${selected.span.span_id}`}
      >
        <div role="presentation" className="reader-list" style={{ height: view.getTotalSize() }}>
          {view.getVirtualItems().map(({ index, start }) => (
            <SpanRow
              key={rows[index]!.span.span_id}
              row={rows[index]!}
              top={start}
              total={total}
              isSelected={index === at}
              onSelect={() => select(index)}
            />
          ))}
        </div>
      </div>
      {selected && <SpanDetail span={selected.span} />}
    </>
  )
}

interface SpanRowProps {
  readonly row: Row
  readonly top: number
  readonly total: number
  readonly isSelected: boolean
  readonly onSelect: () => void
}

function SpanRow({ row: { span, depth, start, duration }, top, total, isSelected, onSelect }: SpanRowProps) {
  const isBad = span.status.code === 'error'
  return (
    <div
      role="option"
      id={`span-${span.span_id}`}
      aria-selected={isSelected}
      className="span"
      style={{ transform: `translateY(${top}px)` }}
      onClick={onSelect}
    >
      <span className="span-name" style={{ paddingLeft: Math.min(depth, DEEPEST) * INDENT }}>
        <span className="clip">{span.name}</span>
        <span className="span-plugin clip">{span.plugin.replace('@svc/plugin-', '')}</span>
      </span>
      <span className="span-line" aria-hidden="true">
        <span
          className={isBad ? 'span-bar span-bad' : 'span-bar'}
          style={{ left: `${(start / total) * 100}%`, width: `max(2px, ${(duration / total) * 100}%)` }}
        />
      </span>
      <span className="number small">{span.duration_ms === undefined ? '–' : durationOf(duration)}</span>
    </div>
  )
}

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

function SpanDetail({ span }: { readonly span: Span }) {
  const { name, plugin, kind, status, attributes, events, duration_ms: duration, cost } = span
  return (
    <section className="span-detail" aria-label="The selected span">
      <div className="row">
        <h3 className="section-title">{name}</h3>
        <Badge tone={status.code === 'error' ? 'bad' : 'plain'}>{status.message ?? kind}</Badge>
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
