import { type CallContext, type Host, type Log, messageOf, type SlotView, svcError, withTimeout } from '@svc/core'
import type { Http, MetricFamily, MetricSource, PeerMessage, Peers, Route, Sample, WorkerMetrics } from '@svc/core/contracts'
import { metricFamily } from '@svc/plugin-kit'
import { withPointedBounds } from './counts.ts'

/** Collects the metrics of this worker and of all workers. */
export interface MetricsCollector {
  /** Returns the metric families of each worker, this worker first, and the totals of ended workers. */
  read(ctx: CallContext): Promise<readonly (readonly MetricFamily[])[]>
  /** For taps of `Peers.hooks`. */
  readonly own: (metrics: WorkerMetrics, ctx: CallContext) => Promise<WorkerMetrics>
  readonly inherit: (metrics: WorkerMetrics) => void
  readonly onPeerMessage: (message: PeerMessage) => void
  /** Whether a client has read the metrics of this server. Expensive metrics are collected only from then on. */
  readonly wasRead: () => boolean
}

interface WorkerFamilies {
  readonly families: readonly MetricFamily[]
  readonly wasRead: boolean
}

const NAME = 'metrics'
/** Below the time after which a server counts a worker with its previous metrics (2 s), and after which a scraper gives up. */
const SOURCE_MS = 1_000

// the cast is safe: only `own`, in this process or another worker, writes the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? { families: [], wasRead: true }) as unknown as WorkerFamilies

interface CollectorOptions {
  readonly sources: SlotView<MetricSource>
  readonly peers: Peers | undefined
  readonly host: Host
  readonly log: Log
}

/** Creates the collector. It omits a source that fails or is late, and logs the first failure. */
export function createMetricsCollector({ sources, peers, host, log }: CollectorOptions): MetricsCollector {
  const retained = createEndedWorkerTotals()
  const isolated = new Set<string>()
  const names = createMetricNames(plugin => isolated.has(plugin))
  const failing = new Set<string>()
  let wasRead = false
  const readOne = async ([name, source]: [string, MetricSource], ctx: CallContext) => {
    try {
      const read = await withTimeout(SOURCE_MS, signal => source.read({ ...ctx, signal }), ctx)
      const families = names.named(name, sources.owner(name), familiesIn(name, read))
      failing.delete(name)
      return families
    } catch (error) {
      if (!failing.has(name)) log.warn({ source: name, err: error }, `the metrics of ${name} are missing: ${messageOf(error)}`)
      failing.add(name)
      return []
    }
  }
  const readOwn = async (ctx: CallContext) => {
    for (const { name, isolation } of (await host.report(ctx)).plugins) if (isolation === 'process') isolated.add(name)
    const read = await Promise.all(sources.entries().map(entry => readOne(entry, ctx)))
    return read.flat()
  }
  const readAll = async (among: Peers, ctx: CallContext): Promise<readonly WorkerMetrics[]> => {
    const all = await among.metrics(ctx)
    if (all.every(metric => metric.ended || partOf(metric).wasRead)) return all
    await among.broadcast(NAME, null, ctx)
    return among.metrics(ctx)
  }
  return {
    async read(ctx) {
      wasRead = true
      if (!peers) return [await readOwn(ctx)]
      return (await readAll(peers, ctx)).map(familiesOf)
    },
    async own(metrics, ctx) {
      const families = [...(await readOwn(ctx)).map(summable), ...retained.read()]
      return { ...metrics, [NAME]: { families, wasRead } as unknown as WorkerMetrics[string] }
    },
    inherit: metrics => retained.take(partOf(metrics).families),
    onPeerMessage({ topic }) {
      if (topic === NAME) wasRead = true
    },
    wasRead: () => wasRead,
  }
}

function familiesOf(metrics: WorkerMetrics): readonly MetricFamily[] {
  const { families } = partOf(metrics)
  return metrics.ended ? families.filter(grows) : families
}

/** Totals of ended workers. This worker adds them to its own, so that no total decreases. */
interface EndedWorkerTotals {
  /** Adds counters and histograms. Gauges of an ended worker are meaningless. */
  take(families: readonly MetricFamily[]): void
  read(): MetricFamily[]
}

/** Maximum series of a family, so that label values from callers do not accumulate over reloads. */
const SERIES = 2_000

interface RetainedFamily extends Omit<MetricFamily, 'values'> {
  readonly series: Map<string, Sample>
}

function createEndedWorkerTotals(): EndedWorkerTotals {
  const families = new Map<string, RetainedFamily>()
  const familyOf = ({ values: _values, ...family }: MetricFamily): RetainedFamily => {
    const retained = families.get(family.name) ?? { ...family, series: new Map<string, Sample>() }
    families.set(family.name, retained)
    return retained
  }
  return {
    take(added) {
      for (const family of added.filter(grows)) addTo(familyOf(family).series, family.values)
    },
    read: () => [...families.values()].map(({ series, ...family }) => ({ ...family, values: [...series.values()] })),
  }
}

/** Whether a family only grows. */
const grows = ({ type, aggregator }: MetricFamily): boolean => type !== 'gauge' && aggregator === 'sum'

/** About a microsecond, as a power of two. */
const STEP = 2 ** -20

/** Rounds values to whole steps, whose sum does not depend on the order. Otherwise a total could decrease slightly when a worker ends, which Prometheus takes for a restart. */
const summable = (family: MetricFamily): MetricFamily =>
  grows(family)
    ? { ...family, values: family.values.map(value => ({ ...value, value: Math.floor(value.value / STEP) * STEP })) }
    : family

function addTo(series: Map<string, Sample>, samples: readonly Sample[]) {
  for (const sample of samples) {
    const key = keyOf(sample)
    const [name, found] = series.has(key) || series.size < SERIES ? [key, sample] : otherOf(sample)
    series.set(name, { ...found, value: found.value + (series.get(name)?.value ?? 0) })
  }
}

const keyOf = ({ metricName = '', labels }: Sample) =>
  `${metricName} ${JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))}`

function otherOf(sample: Sample): [string, Sample] {
  const labels = Object.fromEntries(Object.entries(sample.labels).map(([name, value]) => [name, name === 'le' ? value : 'other']))
  const other = { ...sample, labels }
  return [keyOf(other), other]
}

/** The route that returns the metrics of all workers as one text. */
export function createExposition(metrics: MetricsCollector, http: Http): Route {
  return {
    method: 'GET',
    path: '/metrics',
    summary: 'Read metrics for Prometheus',
    scope: 'read',
    uncounted: true,
    responses: {
      '200': { description: 'Text in the Prometheus exposition format.', schema: { type: 'string' }, contentType: 'text/plain' },
    },
    async handle(_request, ctx) {
      const workers = await metrics.read(ctx)
      const { requestsActive } = await http.metrics(ctx)
      const active = metricFamily('gauge', 'svc_requests_active', 'Active requests.', [{ labels: {}, value: requestsActive }])
      return exposed([[active], ...workers.map(families => families.map(withPointedBounds))])
    },
  }
}

/** A sample with the value NaN: prom-client writes `Nan`, which is not in the text format. */
const MISSPELT_NAN = /^([^#\n].* )Nan$/gm

async function exposed(workers: readonly (readonly MetricFamily[])[]) {
  const { AggregatorRegistry } = await import('prom-client')
  const registry = AggregatorRegistry.aggregate(workers as unknown as object[])
  const text = (await registry.metrics()).replace(MISSPELT_NAN, '$1NaN')
  return { text, headers: { 'Content-Type': registry.contentType } }
}

const METRIC_NAME = /^[a-zA-Z_:][\w:]{0,199}$/
const TYPES: readonly unknown[] = ['counter', 'gauge', 'histogram'] satisfies MetricFamily['type'][]
const AGGREGATORS: readonly unknown[] = ['sum', 'first', 'max'] satisfies MetricFamily['aggregator'][]

/** Names of labels are written into the exposition as they are. */
const LABEL = /^[a-zA-Z_]\w{0,199}$/

const isLabel = ([name, value]: [string, unknown]) => LABEL.test(name) && (typeof value === 'string' || typeof value === 'number')
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)

function isSample(sample: unknown): sample is Sample {
  if (!isObject(sample)) return false
  const { labels, value, metricName } = sample as Partial<Sample>
  const isNamed = metricName === undefined || (typeof metricName === 'string' && METRIC_NAME.test(metricName))
  return typeof value === 'number' && isNamed && isObject(labels) && Object.entries(labels).every(isLabel)
}

function isFamily(family: unknown): family is MetricFamily {
  if (!isObject(family)) return false
  const { name, help, type, aggregator, values } = family as Partial<MetricFamily>
  const isHead = typeof name === 'string' && METRIC_NAME.test(name) && typeof help === 'string'
  return isHead && TYPES.includes(type) && AGGREGATORS.includes(aggregator) && Array.isArray(values) && values.every(isSample)
}

/** Checks the value that a source returned, because an invalid value would break the whole exposition. Throws METRICS_INVALID. */
export function familiesIn(source: string, read: unknown): readonly MetricFamily[] {
  if (Array.isArray(read) && read.every(isFamily)) return read
  throw svcError('METRICS_INVALID', `the metric source ${source} returned something that is not a list of metric families`, {
    details: { source },
    hint: 'Return a list of MetricFamily objects: name, help, type, aggregator, values',
  })
}

/** Packages of svc, whose metrics have documented names. */
const OWN = /^@svc\//

/** `svc-plugin-weather` → `plugin_weather_`, `@me/svc-plugin-weather` → `plugin_me_weather_`. */
const prefixOf = (plugin: string) =>
  `plugin_${plugin
    .replace(/(^|\/)svc-plugin-/, '$1')
    .replaceAll(/\W+/g, '_')
    .replace(/^_/, '')}_`

/** Names the metrics of plugins, so that none can change the metrics of svc or of another plugin. */
export interface MetricNames {
  /** Adds the prefix of the plugin. Throws METRICS_INVALID. */
  named(source: string, plugin: string | undefined, families: readonly MetricFamily[]): readonly MetricFamily[]
}

/** `isIsolated`: also a package of svc gets a prefix in its own process, because an untrusted package can have any name. */
export function createMetricNames(isIsolated: (plugin: string) => boolean): MetricNames {
  const owners = new Map<string, string>()
  return {
    named(source, plugin = source, families) {
      if (OWN.test(plugin) && !isIsolated(plugin)) return families
      const prefix = prefixOf(plugin)
      const owner = owners.get(prefix) ?? plugin
      owners.set(prefix, owner)
      if (owner !== plugin) throw prefixTaken(source, prefix, owner)
      return families.map(family => withPrefix(source, prefix, family))
    },
  }
}

const SERIES_ENDINGS = ['', '_bucket', '_sum', '_count']

function withPrefix(source: string, prefix: string, family: MetricFamily): MetricFamily {
  const { name, values } = family
  const named = (text: string) => (text.startsWith(prefix) ? text : prefix + text)
  const own = new Set(SERIES_ENDINGS.map(end => name + end))
  const strange = values.find(({ metricName = name }) => !own.has(metricName))
  if (strange) throw seriesInvalid(source, strange.metricName ?? '', name)
  return {
    ...family,
    name: named(name),
    values: values.map(value => (value.metricName === undefined ? value : { ...value, metricName: named(value.metricName) })),
  }
}

const prefixTaken = (source: string, prefix: string, owner: string) =>
  svcError('METRICS_INVALID', `the metrics of the source ${source} would begin with ${prefix}, like those of ${owner}`, {
    details: { source },
    hint: 'Rename one of the two plugins',
  })

const seriesInvalid = (source: string, series: string, family: string) =>
  svcError('METRICS_INVALID', `the metric source ${source} returned the series "${series}" in the family "${family}"`, {
    details: { source },
    hint: `Name the series ${family}_bucket, ${family}_sum and ${family}_count`,
  })
