import { Link } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { useMemo } from 'react'
import { Chips, SearchLink } from '../address.tsx'
import { client } from '../api.ts'
import { Back, filtersOf, ListPage, ListProblem, Refresh, Search, TextFilter, useCursorList, useWhole } from '../list.tsx'
import { traces } from '../router.tsx'
import { Badge, costOf, Count, durationOf, Empty, Failure, Loading, Time, type Tone } from '../states.tsx'
import { foundRows, rowsOf } from '../trace-rows.ts'
import { visible } from '../visible-text.ts'
import { Kinds, Waterfall } from './trace-waterfall.tsx'

type Listed = ReplyOf<'get', '/api/v1/traces'>['traces'][number]

const LIST_PAGE = 50
const SPAN_PAGE = 1_000

const STATES = [
  [undefined, 'All'],
  ['error', 'Errors'],
  ['running', 'Running'],
] as const

const READS = [
  [undefined, 'Without reads'],
  ['true', 'With reads'],
] as const

export function Traces() {
  const { id, q, status, reads, conversation, request } = traces.useSearch()
  const filters = { q, status: STATES.map(([value]) => value).find(value => value === status), conversation, request }
  // who follows a link to a request looks for all of it
  const hasReads = reads === 'true' || conversation !== undefined || request !== undefined
  const list = useCursorList({
    key: ['traces', filters, hasReads],
    read: (from, signal) =>
      client.get('/api/v1/traces', {
        query: { limit: LIST_PAGE, ...filtersOf(filters, 'q', 'status', 'conversation', 'request'), reads: hasReads, ...from },
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
          {conversation === undefined && request === undefined ? (
            <Chips label="Requests" name="reads" values={READS} />
          ) : (
            <Related conversation={conversation} request={request} />
          )}
        </>
      }
      list={list}
      keyOf={item => item.span_id}
      entry={item => <Entry item={item} />}
      select={item => ({ id: item.trace_id, span: undefined, find: undefined })}
      isSelected={item => item.trace_id === id}
      empty={<Nothing isFiltered={Object.values(filters).some(Boolean)} hasReads={hasReads} />}
      hasSelection={id !== undefined}
      isWide
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

interface RelatedProps {
  readonly conversation: string | undefined
  readonly request: string | undefined
}

/** What the listed traces belong to, and a way to all others. */
const Related = ({ conversation, request }: RelatedProps) => (
  <div className="row">
    <span className="muted small clip grow">
      {request === undefined ? 'conversation' : 'request'} <code>{visible(request ?? conversation ?? '')}</code>
    </span>
    <SearchLink change={{ conversation: undefined, request: undefined }} className="button" replace>
      All traces
    </SearchLink>
  </div>
)

interface NothingProps {
  readonly isFiltered: boolean
  readonly hasReads: boolean
}

const Nothing = ({ isFiltered, hasReads }: NothingProps) =>
  isFiltered ? (
    <Empty title="Nothing found">
      <Link to="/traces">Show all traces</Link>
    </Empty>
  ) : (
    <Empty title="No traces">
      The server records traces with <code>traces.enabled: true</code> in its configuration.
      {!hasReads && (
        <>
          {' '}
          GET requests that have not failed are not listed. <SearchLink change={{ reads: 'true' }}>List them</SearchLink>
        </>
      )}
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
  const total = useMemo(() => all.reduce((most, { start, duration }) => Math.max(most, start + duration), 0), [all])
  const [first] = pages
  if (!first) return read.error ? <Failure error={read.error} onRetry={read.readAgain} /> : <Loading rows={8} />
  return (
    <>
      <TraceHead roots={first.roots} />
      <ListProblem list={read} />
      <div className="bar">
        <TextFilter label="Find spans" name="find" />
        <span className="muted small">
          <Count value={rows.length} /> of <Count value={all.length} />
        </span>
        <Kinds rows={all} />
      </div>
      {rows.length === 0 ? <Empty title="No span has these words" /> : <Waterfall rows={rows} total={total} />}
    </>
  )
}

/** The first root, with the sums of all: a request and the run that it starts are one trace. */
function summaryOf(roots: readonly Listed[]) {
  const [first] = roots
  const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0)
  const costs = roots.flatMap(({ cost }) => cost ?? [])
  return (
    first && {
      ...first,
      // how it ended: the first that failed, or that still runs
      of: roots.find(({ status }) => status === 'error') ?? roots.find(({ status }) => status === 'running') ?? first,
      spans: sum(roots.map(({ spans }) => spans)),
      tokens: sum(roots.map(({ usage }) => usage.input_tokens + usage.output_tokens)),
      cost: costs.length === 0 ? null : sum(costs),
      run: roots.find(({ run_id: run }) => run !== null)?.run_id,
    }
  )
}

function TraceHead({ roots }: { readonly roots: readonly Listed[] }) {
  const trace = summaryOf(roots)
  if (!trace) return null
  const { name, duration_ms: duration, spans, tokens, cost, principal, of, run } = trace
  return (
    <div className="bar">
      <Back />
      <div className="grow">
        <h2 className="section-title clip">{name}</h2>
        <p className="muted small">
          {duration === null ? 'running' : durationOf(duration)} · <Count value={spans} /> {spans === 1 ? 'span' : 'spans'}
          {tokens > 0 && (
            <>
              {' · '}
              <Count value={tokens} /> tokens
            </>
          )}
          {cost !== null && ` · cost ${costOf(cost)}`}
          {' · '}
          {principal}
        </p>
      </div>
      <Badge tone={TONES[of.status]}>{of.error_code ?? of.status}</Badge>
      <Link className="button" to="/logs" search={{ request: trace.request_id }}>
        Log
      </Link>
      {trace.conversation_id && (
        <Link className="button" to="/conversations" search={{ id: trace.conversation_id }}>
          Conversation
        </Link>
      )}
      {run && (
        <Link className="button" to="/runs" search={{ id: run }}>
          Run
        </Link>
      )}
    </div>
  )
}
