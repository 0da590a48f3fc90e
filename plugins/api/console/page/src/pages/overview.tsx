import type { ReplyOf } from '@svc/client'
import { useQueries, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { lazy, type ReactNode, Suspense, useEffect, useRef } from 'react'
import { Chips } from '../address.tsx'
import { allows, client, type Me, session } from '../api.ts'
import { useRowHeight } from '../density.ts'
import { feed, type ServerEvent } from '../feed.ts'
import { useFreshening } from '../fresh.ts'
import { Card } from '../parts.tsx'
import { usePagesAt } from '../plugin-pages.ts'
import { ReadProblem, Stale } from '../records.tsx'
import { overview } from '../router.tsx'
import { Badge, Count, durationOf, Empty, Failure, Loading, Time, Title, type Tone } from '../states.tsx'
import { useValue } from '../value.ts'
import { visible } from '../visible-text.ts'

const MINUTE_MS = 60_000
const HOUR_MINUTES = 60
/** The numbers follow the events, at most so often. */
const FRESHEN_MS = 3_000

const lastHour = () => new Date((Math.floor(Date.now() / MINUTE_MS) - HOUR_MINUTES + 1) * MINUTE_MS).toISOString()

export function Overview() {
  useFreshening({ key: ['overview'], everyMs: FRESHEN_MS })
  return (
    <div className="page">
      <Head />
      <Tiles />
      <div className="columns">
        <Activity />
        <Aside />
      </div>
      <FromPlugins />
    </div>
  )
}

const PluginPanels = lazy(() => import('../plugin-part.tsx'))

const FromPlugins = () =>
  usePagesAt('overview').length > 0 && (
    <Suspense fallback={<Loading />}>
      <PluginPanels />
    </Suspense>
  )

const useStatus = () =>
  useQuery({ queryKey: ['overview', 'status'], queryFn: ({ signal }) => client.get('/api/v1/status', { signal }) })

/** `/health` answers 503 with the same record if a check fails. */
async function readHealth(
  signal: AbortSignal
): Promise<{ readonly status: string; readonly checks: Readonly<Record<string, string>> }> {
  const response = await fetch('/health', { signal })
  const { status, checks } = (await response.json()) as { status: string; checks?: Record<string, unknown> }
  const texts = Object.entries(checks ?? {}).map(
    ([name, state]) => [name, typeof state === 'string' ? state : 'unknown'] as const
  )
  return { status, checks: Object.fromEntries(texts) }
}

const useHealth = () => useQuery({ queryKey: ['overview', 'health'], queryFn: ({ signal }) => readHealth(signal) })

const toneOf = (state: string): Tone => (state === 'healthy' ? 'ok' : state === 'degraded' ? 'warn' : 'bad')

function Head() {
  const health = useHealth()
  const status = useStatus()
  return (
    <div className="row spread">
      <div className="row">
        <Title name="Overview">Overview</Title>
        {health.data && <Badge tone={toneOf(health.data.status)}>{health.data.status}</Badge>}
      </div>
      <span className="muted small">
        {status.data && `svc ${status.data.version}, up ${uptimeOf(status.data.uptime_seconds)}`}
      </span>
    </div>
  )
}

function uptimeOf(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`
}

const TILES = [
  { metric: 'requests', name: 'Requests' },
  { metric: 'errors', name: 'Errors' },
  { metric: 'latency', name: 'Median latency' },
  { metric: 'tokens', name: 'Tokens' },
] as const

type Metric = (typeof TILES)[number]['metric']
type Read = ReplyOf<'get', '/api/v1/series'>

function Tiles() {
  const reads = useQueries({
    queries: TILES.map(({ metric }) => ({
      queryKey: ['overview', 'series', metric],
      queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
        client.get('/api/v1/series', { query: { metric, step: 'minute', from: lastHour() }, signal }),
    })),
  })
  const old = reads.find(({ error, data }) => error && data)
  const refetch = () => Promise.all(reads.map(read => read.refetch()))
  return (
    <section aria-label="The last hour" className="stack">
      {old && <Stale query={{ ...old, refetch }} />}
      <div className="tiles">
        {TILES.map((tile, at) => (
          <Tile key={tile.metric} {...tile} data={reads[at]?.data} isFailed={Boolean(reads[at]?.error)} />
        ))}
      </div>
    </section>
  )
}

interface TileProps {
  readonly metric: Metric
  readonly name: string
  readonly data: Read | undefined
  readonly isFailed: boolean
}

function Tile({ metric, name, data, isFailed }: TileProps) {
  const { values, total } = data ? shownOf(data, metric) : NOTHING
  return (
    <div className="tile">
      <span className="tile-name">{name}, last hour</span>
      <span className="tile-value">{data ? textOfTotal(metric, total) : isFailed ? '–' : ' '}</span>
      <Spark values={values} name={name} isBad={metric === 'errors'} isTime={metric === 'latency'} />
    </div>
  )
}

function textOfTotal(metric: Metric, total: number | null): ReactNode {
  if (total === null) return '–'
  return metric === 'latency' ? durationOf(total) : <Count value={total} />
}

interface Line {
  readonly values: readonly (number | null)[]
  readonly total: number | null
}
const NOTHING: Line = { values: [], total: null }

/** The median of latencies, which a few long streams do not change, and the sum of all lines of the rest. */
function shownOf({ series, times }: Read, metric: Metric): Line {
  if (metric === 'latency') return series.find(({ name }) => name === 'p50') ?? NOTHING
  const sum = (values: readonly (number | null | undefined)[]) => values.reduce<number>((all, value) => all + (value ?? 0), 0)
  return {
    values: times.map((_, at) => sum(series.map(({ values }) => values[at]))),
    total: sum(series.map(({ total }) => total)),
  }
}

const BAR = 4
const HEIGHT = 32

function Spark({
  values,
  name,
  isBad,
  isTime,
}: {
  readonly values: readonly (number | null)[]
  readonly name: string
  readonly isBad: boolean
  readonly isTime: boolean
}) {
  const bars = [...Array.from<null>({ length: Math.max(0, HOUR_MINUTES - values.length) }).fill(null), ...values].slice(
    -HOUR_MINUTES
  )
  const most = Math.max(1, ...bars.map(value => value ?? 0))
  const busiest = isTime ? `${name}: at most ${durationOf(most)}` : `${name}: at most ${Math.round(most)} a minute`
  return (
    <svg
      className="spark"
      viewBox={`0 0 ${HOUR_MINUTES * BAR} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={busiest}
    >
      {bars.map((value, at) => {
        const height = value ? Math.max(2, (value / most) * HEIGHT) : 1
        return (
          <rect
            key={at}
            className={value ? undefined : 'spark-none'}
            style={value && isBad ? { fill: 'var(--bad)' } : undefined}
            x={at * BAR}
            y={HEIGHT - height}
            width={BAR - 1}
            height={height}
          />
        )
      })}
    </svg>
  )
}

const CATEGORIES = ['CHAT', 'TOOL', 'MODEL', 'PROVIDER', 'WORKFLOW', 'JOB', 'PLUGIN', 'AUDIT'] as const
const CATEGORY_CHIPS = [
  [undefined, 'All'],
  ...CATEGORIES.map(name => [name, name.charAt(0) + name.slice(1).toLowerCase()] as const),
] as const
const LIVE: Readonly<Record<string, readonly [Tone, string]>> = {
  connecting: ['plain', 'connecting'],
  live: ['ok', 'live'],
  paused: ['warn', 'paused'],
  failed: ['bad', 'stopped'],
}

function Activity() {
  const { category } = overview.useSearch()
  const { events, state, error } = useValue(feed)
  const shown = category === undefined ? events : events.filter(event => event.category === category)
  const [tone, word] = LIVE[state]!
  return (
    <section className="card" aria-label="Activity">
      <div className="card-head">
        <div className="row">
          <h2 className="section-title">Activity</h2>
          <Badge tone={tone}>{word}</Badge>
        </div>
        <Chips label="Kinds of events" name="category" values={CATEGORY_CHIPS} />
      </div>
      {state === 'failed' && <Failure error={new Error(error ?? 'The stream of events has stopped.')} />}
      {shown.length > 0 ? <Events events={shown} /> : <NoEvents category={category} />}
    </section>
  )
}

const NoEvents = ({ category }: { readonly category: string | undefined }) => (
  <div className="events events-none">
    <Empty
      title={
        category === undefined ? 'Nothing has happened since you opened this page' : 'No such event since you opened this page'
      }
    >
      Events appear here as they happen.
    </Empty>
  </div>
)

function Events({ events }: { readonly events: readonly ServerEvent[] }) {
  const box = useRef<HTMLDivElement>(null)
  const height = useRowHeight()
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 8,
    getItemKey: at => events[at]!.id,
  })
  useEffect(() => rows.measure(), [rows, height])
  return (
    <div className="events" ref={box} tabIndex={0} role="region" aria-label="Events, newest first">
      <ul className="events-list" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, key, start }) => (
          <EventRow key={key} event={events[index]!} top={start} />
        ))}
      </ul>
    </div>
  )
}

const isBadType = (type: string) => /fail|error|opened|quarantin|lost/.test(type)
const isGoodType = (type: string) => /completed|closed|connected|installed/.test(type)
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' })

function EventRow({ event, top }: { readonly event: ServerEvent; readonly top: number }) {
  const type = event.type.replace(/^svc\./, '')
  const tone = isBadType(type) ? 'bad' : isGoodType(type) ? 'ok' : 'plain'
  return (
    <li className="event" style={{ transform: `translateY(${top}px)` }}>
      <time dateTime={event.time} title={new Date(event.time).toLocaleString()}>
        {clock.format(Date.parse(event.time))}
      </time>
      <span className="event-what">
        {event.requestid === '' ? (
          <span>{sentence(type)}</span>
        ) : (
          <Link
            to="/logs"
            search={{ request: event.requestid }}
            className="quiet-link"
            title="The log of its request"
            preload={false}
          >
            {sentence(type)}
          </Link>
        )}
        <span className="event-about clip">{aboutOf(event)}</span>
      </span>
      <Badge tone={tone}>{event.category.toLowerCase()}</Badge>
    </li>
  )
}

const sentence = (type: string) => type.charAt(0).toUpperCase() + type.slice(1).replaceAll('_', ' ')

const SHOWN = ['tool', 'model', 'workflow', 'kind', 'plugin', 'provider', 'error_code', 'duration_ms'] as const

function aboutOf({ data, subject }: ServerEvent): ReactNode {
  const facts = SHOWN.flatMap(name => {
    const value = data[name]
    if (typeof value === 'number') return [`${Math.round(value)} ms`]
    return typeof value === 'string' ? [visible(value)] : []
  })
  return facts.length > 0 ? facts.join(' · ') : subject === undefined ? undefined : visible(subject)
}

function Aside() {
  const current = useValue(session)
  return (
    <div className="stack">
      <Checks />
      <Providers />
      {current.state === 'in' && allows(current.me, 'workflows') && <Waiting me={current.me} />}
    </div>
  )
}

function Checks() {
  const query = useHealth()
  const { data, error } = query
  return (
    <Card title="Checks">
      <ReadProblem query={query} />
      {!data && !error && <Loading />}
      <dl className="facts">
        {Object.entries(data?.checks ?? {}).map(([name, state]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Badge tone={toneOf(state)}>{state}</Badge>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}

function Providers() {
  const query = useStatus()
  const { data, error } = query
  const all = Object.entries(data?.providers ?? {}) as [string, { healthy?: boolean; requests?: number }][]
  return (
    <Card title="Providers">
      <ReadProblem query={query} />
      {!data && !error && <Loading rows={2} />}
      <dl className="facts">
        {all.map(([name, { healthy, requests = 0 }]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="row">
              <span className="muted">
                <Count value={requests} /> calls
              </span>
              <Badge tone={healthy === false ? 'bad' : 'ok'}>{healthy === false ? 'failing' : 'answers'}</Badge>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}

/** Questions that runs and chats ask people. */
function Waiting({ me }: { readonly me: Me }) {
  const query = useQuery({
    queryKey: ['overview', 'questions', me.principal],
    queryFn: ({ signal }) => client.get('/api/v1/workflows/questions', { signal }),
  })
  const { data } = query
  const count = (data?.questions.length ?? 0) + (data?.chats.length ?? 0)
  return (
    <Card title="Waiting for people">
      <ReadProblem query={query} />
      {data && count === 0 && <p className="facts-none">No open question</p>}
      <dl className="facts">
        {(data?.questions ?? []).slice(0, 5).map((question, at) => (
          <div key={at}>
            <dt className="clip">{textOf(question, 'message') ?? textOf(question, 'workflow') ?? 'A run asks'}</dt>
            <dd className="muted">{textOf(question, 'at') ? <Time at={textOf(question, 'at')!} /> : 'run'}</dd>
          </div>
        ))}
        {(data?.chats ?? []).slice(0, 5).map((question, at) => (
          <div key={at}>
            <dt className="clip">{textOf(question, 'question') ?? textOf(question, 'tool') ?? 'A tool asks'}</dt>
            <dd className="muted">chat</dd>
          </div>
        ))}
      </dl>
    </Card>
  )
}

function textOf(record: object, name: string): string | undefined {
  const value = (record as Readonly<Record<string, unknown>>)[name]
  return typeof value === 'string' ? visible(value) : undefined
}
