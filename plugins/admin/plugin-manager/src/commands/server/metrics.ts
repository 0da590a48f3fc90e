/** One series of a metric as it stands. */
export interface Series {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Series by the text that they are written with. */
export type Metrics = ReadonlyMap<string, Series>

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** Reads metrics in the text format of Prometheus; what is no sample is passed over. */
export function parseMetrics(text: string): Metrics {
  const all = new Map<string, Series>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? []
    if (name !== undefined) all.set(`${name}{${labels}}`, { name, labels: labelsOf(labels), value: Number(value) })
  }
  return all
}

const labelsOf = (text: string) => Object.fromEntries([...text.matchAll(LABEL)].map(([, name, value]) => [name, plain(value!)]))

const plain = (value: string) => value.replaceAll(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char))

/** What was added since then. A series that fell began anew: all of it is new. */
export function grownSince(before: Metrics, now: Metrics): Metrics {
  const grown = [...now].map(([key, series]): [string, Series] => {
    const then = before.get(key)?.value ?? 0
    return [key, { ...series, value: series.value < then ? series.value : series.value - then }]
  })
  return new Map(grown)
}

/** Answered requests and how long they took; milliseconds are absent where there was none. */
export interface Answered {
  readonly requests: number
  /** Answered with 4xx. */
  readonly refused: number
  /** Answered with 5xx. */
  readonly failed: number
  readonly p50Ms?: number
  readonly p95Ms?: number
}

interface RouteAnswered extends Answered {
  readonly route: string
}

/** Calls of a plugin or a provider, and the time they took. */
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

/** What the metrics of a server say. */
export interface Summary {
  readonly all: Answered
  /** By method and route, the busiest first. */
  readonly routes: readonly RouteAnswered[]
  readonly providers: readonly ProviderWorked[]
  /** What plugins do on hooks; what took the most time first. */
  readonly plugins: readonly Worked[]
}

/** What looks at the server is not its work: `svc status` itself would be most of it. */
const WATCHING = /^(\/health(\/.*)?|\/metrics|\/api\/v1\/status)$/

export function summaryOf(metrics: Metrics): Summary {
  const named = Map.groupBy(metrics.values(), series => series.name)
  const of = (name: string) => named.get(name) ?? []
  const isWork = ({ labels }: Series) => !WATCHING.test(labels.route ?? '')
  const counts = of('svc_requests_total').filter(isWork)
  const buckets = of('svc_request_duration_seconds_bucket').filter(isWork)
  const route = ({ labels: { method, route: path } }: Series) => `${method} ${path}`
  const bucketsOf = Map.groupBy(buckets, route)
  return {
    all: answered(counts, buckets),
    routes: [...Map.groupBy(counts, route)]
      .map(([name, some]) => ({ route: name, ...answered(some, bucketsOf.get(name) ?? []) }))
      .filter(one => one.requests > 0)
      .sort((a, b) => b.requests - a.requests),
    providers: providersOf(of),
    plugins: pluginsOf(of),
  }
}

const sum = (some: readonly Series[]) => some.reduce((total, { value }) => total + value, 0)

function answered(counts: readonly Series[], buckets: readonly Series[]): Answered {
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

/** Seconds below which this share lies, as Prometheus estimates it: evenly spread within a bucket, and never above the last bound. */
function quantileOf(buckets: readonly Series[], share: number): number | undefined {
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

type Of = (name: string) => readonly Series[]

/** Outcomes of calls that are no failure of the model. */
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

/** What plugins do on hooks alone: what they add is told by route and provider. */
function pluginsOf(of: Of): Worked[] {
  const by = (name: string) => Map.groupBy(of(name), ({ labels }) => labels.plugin ?? '')
  const [calls, errors, seconds] = [by('svc_hook_calls_total'), by('svc_hook_errors_total'), by('svc_hook_seconds_total')]
  const total = (some: ReadonlyMap<string, Series[]>, name: string) => sum(some.get(name) ?? [])
  return [...calls.keys()]
    .map(name => ({ name, calls: total(calls, name), errors: total(errors, name), ms: total(seconds, name) * 1000 }))
    .sort((a, b) => b.ms - a.ms)
}

/** `@svc/plugin-chat` is `chat`. */
export const shortName = (plugin: string): string => plugin.replace(/^@svc\/plugin-/, '')
