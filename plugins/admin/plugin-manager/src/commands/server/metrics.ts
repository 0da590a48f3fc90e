/** One series of a metric. */
interface MetricSeries {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Series by name and labels, as in the text format. */
export type Metrics = ReadonlyMap<string, MetricSeries>

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** Parses metrics in the text format of Prometheus; ignores other lines. */
export function parseMetrics(text: string): Metrics {
  const all = new Map<string, MetricSeries>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name !== undefined) all.set(`${name}{${labels}}`, { name, labels: labelsOf(labels), value: Number(value) })
  }
  return all
}

const labelsOf = (text: string) => Object.fromEntries([...text.matchAll(LABEL)].map(([, name, value]) => [name, plain(value!)]))

const plain = (value: string) => value.replaceAll(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char))

/** The growth of each series. A series that fell was restarted: all of it is growth. */
export function grownSince(before: Metrics, now: Metrics): Metrics {
  const grown = [...now].map(([key, series]): [string, MetricSeries] => {
    const then = before.get(key)?.value ?? 0
    return [key, { ...series, value: series.value < then ? series.value : series.value - then }]
  })
  return new Map(grown)
}

/** Answered requests and their latency; milliseconds are absent without requests. */
export interface RequestLatency {
  readonly requests: number
  /** Answered with 4xx. */
  readonly refused: number
  /** Answered with 5xx. */
  readonly failed: number
  readonly p50Ms?: number
  readonly p95Ms?: number
}

interface RouteAnswered extends RequestLatency {
  readonly route: string
}

/** Calls of a plugin or a provider, and their total time. */
export interface Worked {
  readonly name: string
  readonly calls: number
  readonly errors: number
  readonly ms: number
}

export interface ProviderWorked extends Worked {
  /** Tokens. */
  readonly input: number
  readonly output: number
}

/** A summary of the metrics of a server. */
export interface Summary {
  readonly all: RequestLatency
  /** By method and route, the busiest first. */
  readonly routes: readonly RouteAnswered[]
  readonly providers: readonly ProviderWorked[]
  /** Work of plugins on hooks, the longest time first. */
  readonly plugins: readonly Worked[]
}

/** Requests that observe the server: `svc status` itself would be most of them. */
const WATCHING = /^(\/health(\/.*)?|\/metrics|\/api\/v1\/status)$/

export function summaryOf(metrics: Metrics): Summary {
  const named = Map.groupBy(metrics.values(), series => series.name)
  const of = (name: string) => named.get(name) ?? []
  const isWork = ({ labels }: MetricSeries) => !WATCHING.test(labels.route ?? '')
  const counts = of('svc_requests_total').filter(isWork)
  const buckets = of('svc_request_duration_seconds_bucket').filter(isWork)
  const route = ({ labels: { method, route: path } }: MetricSeries) => `${method} ${path}`
  const bucketsOf = Map.groupBy(buckets, route)
  return {
    all: answered(counts, buckets),
    routes: [...Map.groupBy(counts, route)]
      .map(([name, some]) => ({ route: name, ...answered(some, bucketsOf.get(name) ?? []) }))
      .filter(item => item.requests > 0)
      .sort((a, b) => b.requests - a.requests),
    providers: providersOf(of),
    plugins: pluginsOf(of),
  }
}

const sum = (some: readonly MetricSeries[]) => some.reduce((total, { value }) => total + value, 0)

function answered(counts: readonly MetricSeries[], buckets: readonly MetricSeries[]): RequestLatency {
  const withStatus = (first: string) => sum(counts.filter(({ labels }) => labels.status?.startsWith(first)))
  const quantile = (share: number) => quantileOf(buckets, share)
  const [p50, p95] = [quantile(0.5), quantile(0.95)]
  return {
    requests: sum(counts),
    refused: withStatus('4'),
    failed: withStatus('5'),
    ...(p50 === undefined ? {} : { p50Ms: p50 * 1000 }),
    ...(p95 === undefined ? {} : { p95Ms: p95 * 1000 }),
  }
}

/** The quantile in seconds, estimated as Prometheus does: evenly spread within a bucket, and at most the last bound. */
function quantileOf(buckets: readonly MetricSeries[], share: number): number | undefined {
  const bounds = [...Map.groupBy(buckets, ({ labels }) => Number(labels.le === '+Inf' ? Infinity : labels.le))]
    .map(([bound, some]) => ({ bound, count: sum(some) }))
    .sort((a, b) => a.bound - b.bound)
  const rank = (bounds.at(-1)?.count ?? 0) * share
  if (rank === 0) return undefined
  const at = bounds.findIndex(({ count }) => count >= rank)
  const { bound: from, count: below } = bounds[at - 1] ?? { bound: 0, count: 0 }
  const { bound, count } = bounds[at]!
  return Number.isFinite(bound) ? from + ((bound - from) * (rank - below)) / (count - below) : from
}

type Of = (name: string) => readonly MetricSeries[]

/** Outcomes that are not failures of the model. */
const WELL: ReadonlySet<string | undefined> = new Set(['ok', 'cancelled'])

function providersOf(of: Of): ProviderWorked[] {
  const by = (name: string) => Map.groupBy(of(name), ({ labels }) => labels.provider ?? '')
  const [calls, seconds, tokens] = [by('svc_model_calls_total'), by('svc_model_seconds_total'), by('svc_tokens_total')]
  return [...calls].map(([name, some]) => {
    const tokensOf = (kind: string) => sum((tokens.get(name) ?? []).filter(({ labels }) => labels.kind === kind))
    return {
      name,
      calls: sum(some),
      errors: sum(some.filter(({ labels }) => !WELL.has(labels.outcome))),
      ms: sum(seconds.get(name) ?? []) * 1000,
      input: tokensOf('input'),
      output: tokensOf('output'),
    }
  })
}

/** Work on hooks only: routes and providers cover the contributions of plugins. */
function pluginsOf(of: Of): Worked[] {
  const by = (name: string) => Map.groupBy(of(name), ({ labels }) => labels.plugin ?? '')
  const [calls, errors, seconds] = [by('svc_hook_calls_total'), by('svc_hook_errors_total'), by('svc_hook_seconds_total')]
  const total = (some: ReadonlyMap<string, MetricSeries[]>, name: string) => sum(some.get(name) ?? [])
  return [...calls.keys()]
    .map(name => ({ name, calls: total(calls, name), errors: total(errors, name), ms: total(seconds, name) * 1000 }))
    .sort((a, b) => b.ms - a.ms)
}

/** `@svc/plugin-chat` is `chat`. */
export const shortName = (plugin: string): string => plugin.replace(/^@svc\/plugin-/, '')
