import { type CallContext, type Host, type Log, messageOf, type SlotView } from '@svc/core'
import type { Http, MetricFamily, MetricSource, PeerMessage, Peers, Route, Sample, WorkerMetrics } from '@svc/core/contracts'
import { metricFamily } from '@svc/plugin-kit'
import { withPointedBounds } from './model-counts.ts'
import { createMetricNames, familiesIn } from './form.ts'

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

// the cast is safe: only `own`, in this process or another worker, writes the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? { families: [], wasRead: true }) as unknown as WorkerFamilies

interface CollectorOptions {
  readonly sources: SlotView<MetricSource>
  readonly peers: Peers | undefined
  readonly host: Host
  readonly log: Log
}

/** Creates the collector. It omits a source that fails and logs the failure. */
export function createMetricsCollector({ sources, peers, host, log }: CollectorOptions): MetricsCollector {
  const retained = createEndedWorkerTotals()
  const isolated = new Set<string>()
  const names = createMetricNames(plugin => isolated.has(plugin))
  let wasRead = false
  const readOne = async ([name, source]: [string, MetricSource], ctx: CallContext) => {
    try {
      return names.named(name, sources.owner(name), familiesIn(name, await source.read(ctx)))
    } catch (error) {
      log.warn({ source: name, err: error }, `the metrics of ${name} are missing: ${messageOf(error)}`)
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
