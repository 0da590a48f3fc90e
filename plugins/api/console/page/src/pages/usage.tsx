import { useQuery } from '@tanstack/react-query'
import type { QueryOf, ReplyOf } from '@svc/client'
import { lazy, Suspense, useMemo, type FormEvent } from 'react'
import { Chips, useAddress } from '../address.tsx'
import { allows, client, session, textIn } from '../api.ts'
import { useFreshening } from '../fresh.ts'
import { type Column, ColumnTitle, orderOf, useItemTable } from '../item-table.tsx'
import { Card } from '../parts.tsx'
import { usage } from '../router.tsx'
import { Badge, Count, durationOf, Empty, Failure, Loading, Time, Title } from '../states.tsx'
import { useValue } from '../value.ts'

const Chart = lazy(() => import('../chart.tsx'))

type By = NonNullable<QueryOf<'get', '/api/v1/usage'>['by']>
type Metric = QueryOf<'get', '/api/v1/series'>['metric']
type Row = ReplyOf<'get', '/api/v1/usage'>['rows'][number]

const HOUR_MS = 3_600_000
/** Without one in the address: a day. */
const RANGES = [
  ['1h', 'Hour', HOUR_MS],
  [undefined, 'Day', 24 * HOUR_MS],
  ['7d', 'Week', 7 * 24 * HOUR_MS],
  ['30d', 'Month', 30 * 24 * HOUR_MS],
] as const
const METRICS = [
  [undefined, 'Tokens'],
  ['cost', 'Cost'],
  ['requests', 'Requests'],
  ['errors', 'Errors'],
  ['latency', 'Latency'],
] as const
const ROWS = [
  [undefined, 'Principal'],
  ['model', 'Model'],
  ['provider', 'Provider'],
  ['conversation', 'Conversation'],
  ['workflow', 'Workflow'],
  ['tool', 'Tool'],
  ['route', 'Route'],
  ['status', 'Status'],
] as const

const oneOf = <T extends string>(
  values: readonly (readonly [T | undefined, ...unknown[]])[],
  asked: string | undefined,
  usual: T
): T => values.map(([value]) => value).find(value => value !== undefined && value === asked) ?? usual

/** The beginning of the range, to the minute: the same question has the same answer for a while. */
const beginOf = (range: string | undefined): string => {
  const [, , ms] = RANGES.find(([value]) => value === range) ?? RANGES[1]
  return new Date(Math.floor((Date.now() - ms) / 60_000) * 60_000).toISOString()
}

export function Usage() {
  useFreshening({ key: ['usage'], isAbout: ({ type }) => /turn_|run_|model_/.test(type), everyMs: 5_000 })
  const { isPending } = useRows()
  return (
    <div className="page">
      <div className="row spread">
        <Title name="Usage and limits">Usage and limits</Title>
        <Chips label="Time" name="range" values={RANGES.map(([value, text]) => [value, text])} />
      </div>
      <Series />
      <Rows />
      {/* no table is as high as what stands in its place: what is below waits for it */}
      <div hidden={isPending}>
        <Limits />
      </div>
    </div>
  )
}

function Series() {
  const { range, metric: asked } = usage.useSearch()
  const metric = oneOf<Metric>(METRICS, asked, 'tokens')
  const step = range === '1h' ? 'minute' : 'hour'
  const { data, error, refetch } = useQuery({
    queryKey: ['usage', 'series', metric, range],
    queryFn: ({ signal }) => client.get('/api/v1/series', { query: { metric, step, from: beginOf(range) }, signal }),
  })
  const shown = useMemo(() => data && { times: data.times.map(time => Date.parse(time) / 1_000), lines: data.series }, [data])
  const textOf = (value: number) => (metric === 'latency' ? durationOf(value) : shortText(value))
  return (
    <Card title="Over time" actions={<Chips label="Numbers" name="metric" values={METRICS} />}>
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      <div className="chart-box">
        {!shown && !error && <Loading rows={5} />}
        {shown?.lines.every(({ values }) => values.every(value => !value)) && (
          <Empty title="Nothing in this time">Hold a conversation, or choose a longer time.</Empty>
        )}
        {shown?.lines.some(({ values }) => values.some(Boolean)) && (
          <Suspense fallback={<Loading rows={5} />}>
            <Chart {...shown} label={chartLabel(metric, data)} valueText={textOf} />
          </Suspense>
        )}
      </div>
    </Card>
  )
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const shortText = (value: number) => (value !== 0 && Math.abs(value) < 1 ? value.toPrecision(2) : compact.format(value))

/** A picture says nothing to a screen reader: its totals do. */
function chartLabel(metric: string, data: ReplyOf<'get', '/api/v1/series'> | undefined): string {
  const totals = data?.series.map(({ name, total }) => `${name} ${total === null ? 'none' : shortText(total)}`).join(', ')
  return `${metric} over time: ${totals ?? ''}`
}

function useRows() {
  const { range, by: asked } = usage.useSearch()
  const by = oneOf<By>(ROWS, asked, 'principal')
  return useQuery({
    queryKey: ['usage', 'rows', by, range],
    queryFn: ({ signal }) => client.get('/api/v1/usage', { query: { by, from: beginOf(range) }, signal }),
  })
}

function Rows() {
  const { by: asked } = usage.useSearch()
  const { data, error, refetch } = useRows()
  return (
    <Card title="Who used what" actions={<Chips label="By" name="by" values={ROWS} />}>
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading rows={5} />}
      {data?.rows.length === 0 && <Empty title="Nothing in this time">Choose a longer time.</Empty>}
      {data && data.rows.length > 0 && (
        <RowTable data={data} first={ROWS.find(([value]) => value === asked)?.[1] ?? 'Principal'} />
      )}
    </Card>
  )
}

interface RowTableProps {
  readonly data: ReplyOf<'get', '/api/v1/usage'>
  /** The title of the first column. */
  readonly first: string
}

/** Who used what, in the order that the reader chooses. The sums are the last row in each order. */
function RowTable({ data: { rows, total, currency }, first }: RowTableProps) {
  const columns = useMemo(() => columnsOf(first, currency), [first, currency])
  const table = useItemTable({ columns, items: rows, keyOf: row => row.name, orderIn: 'sort' })
  return (
    <div className="scroll-x" tabIndex={0} role="region" aria-label="Usage">
      <table className="grid">
        <thead>
          {table.getHeaderGroups().map(({ id, headers }) => (
            <tr key={id}>
              {headers.map((header, at) => (
                <th key={header.id} scope="col" className={at === 0 ? undefined : 'number'} aria-sort={orderOf(header)}>
                  <ColumnTitle header={header} />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {table.getRowModel().rows.map(({ id, original }) => (
            <UsageRow key={id} row={original} columns={columns} />
          ))}
        </tbody>
        <tfoot>
          <UsageRow row={total} columns={columns} />
        </tfoot>
      </table>
    </div>
  )
}

const NUMBERS: readonly (readonly [name: string, valueOf: (row: Row) => number | null])[] = [
  ['Requests', row => row.requests],
  ['Errors', row => row.errors],
  ['Calls', row => row.calls],
  ['Failed', row => row.failures],
  ['Tokens in', row => row.input_tokens],
  ['Tokens out', row => row.output_tokens],
  ['Cached', row => row.cached_tokens],
  ['Cost', row => row.cost],
]

const costs = new Intl.NumberFormat('en', { minimumFractionDigits: 4, maximumFractionDigits: 4 })

/** A cost in a column: each has as many digits, so that the points stand below each other. */
const Cost = ({ value }: { readonly value: number }) => <span title={String(value)}>{costs.format(value)}</span>

const columnsOf = (first: string, currency: string): readonly Column<Row>[] => [
  { name: first, width: 'auto', sortBy: row => row.name, cell: row => row.name },
  ...NUMBERS.map(([name, valueOf]): Column<Row> => {
    const isCost = name === 'Cost'
    return {
      name: isCost && currency !== 'none' ? `Cost, ${currency}` : name,
      width: 'auto',
      isNumber: true,
      sortBy: valueOf,
      cell(row) {
        const value = valueOf(row)
        return value === null ? '–' : isCost ? <Cost value={value} /> : <Count value={value} />
      },
    }
  }),
]

const UsageRow = ({ row, columns: [first, ...numbers] }: { readonly row: Row; readonly columns: readonly Column<Row>[] }) => (
  <tr>
    <th scope="row">{first?.cell(row)}</th>
    {numbers.map(({ name, cell }) => (
      <td key={name} className="number">
        {cell(row)}
      </td>
    ))}
  </tr>
)

const LIMIT_NAMES: Readonly<Record<string, string>> = {
  requests_per_minute: 'Requests a minute',
  requests_per_day: 'Requests a day',
}

/** What is left for the reader, or, for administrators, for someone else. */
function Limits() {
  const { client: asked } = usage.useSearch()
  const own = useQuery({
    queryKey: ['usage', 'limits'],
    queryFn: ({ signal }) => client.get('/api/v1/limits', { signal }),
  })
  const by = own.data?.by ?? 'principal'
  const other = useQuery({
    queryKey: ['usage', 'limits', by, asked],
    enabled: asked !== undefined && own.data !== undefined,
    queryFn: ({ signal }) => client.get('/api/v1/limits', { query: { [by]: asked }, signal }),
  })
  const { data, error } = asked === undefined ? own : other
  const current = useValue(session)
  return (
    <Card title="Limits" actions={data && !data.enabled && <Badge>switched off</Badge>}>
      {current.state === 'in' && allows(current.me, 'admin') && <LimitSearch by={by} />}
      {error && <Failure error={error} onRetry={() => void (asked === undefined ? own : other).refetch()} />}
      {!data && !error && <Loading rows={2} />}
      {data && (
        <ul className="meters plain-list" aria-label={`Limits of ${data.client}`}>
          {data.limits.map(({ name, limit, used, remaining, reset }) => (
            <li key={name} className="limit">
              <span className="row spread">
                <span>
                  {LIMIT_NAMES[name] ?? name} <span className="muted">of {data.client}</span>
                </span>
                <span className="muted">
                  {data.enabled ? (
                    <>
                      <Count value={remaining} /> of <Count value={limit} /> left
                    </>
                  ) : (
                    <>
                      <Count value={limit} /> when switched on
                    </>
                  )}
                  {reset !== null && (
                    <>
                      {', '}again <Time at={new Date(reset * 1_000).toISOString()} />
                    </>
                  )}
                </span>
              </span>
              <meter
                min={0}
                max={Math.max(1, limit)}
                high={limit * 0.8}
                optimum={0}
                value={used}
                aria-label={`${name}: ${used} of ${limit} used`}
              />
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

function LimitSearch({ by }: { readonly by: string }) {
  const [search, change] = useAddress()
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    change({ client: textIn(new FormData(event.currentTarget), 'client') })
  }
  return (
    <form className="row pane-in" onSubmit={submit}>
      <label className="grow">
        <span className="visually-hidden">{by === 'address' ? 'Address' : 'Principal'}</span>
        <input
          key={search.client}
          className="input"
          name="client"
          defaultValue={search.client ?? ''}
          placeholder={by === 'address' ? 'Limits of an address, such as 192.0.2.7' : 'Limits of a principal, such as token:anna'}
        />
      </label>
      <button type="submit" className="button">
        Show
      </button>
    </form>
  )
}
