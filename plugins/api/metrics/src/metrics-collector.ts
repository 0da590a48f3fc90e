import { type CallContext, type Log, messageOf, type SlotView } from '@svc/core'
import type { Http, MetricFamily, MetricSource, PeerMessage, Peers, Route, Sample, WorkerMetrics } from '@svc/core/contracts'
import { gauge, withPointedBounds } from './model-counts.ts'
import { familiesIn } from './form.ts'

/** The figures of all workers: what this one adds to them, and all of them together. */
export interface MetricsCollector {
  /** The families of each worker, this one's first, and the totals of those that ended. */
  read(ctx: CallContext): Promise<readonly (readonly MetricFamily[])[]>
  /** For taps of `Peers.hooks`. */
  readonly own: (metrics: WorkerMetrics, ctx: CallContext) => Promise<WorkerMetrics>
  readonly inherit: (metrics: WorkerMetrics) => void
  readonly onPeerMessage: (news: PeerMessage) => void
  /** Whether somebody has asked for the figures of this server: what is costly to count is counted from then on. */
  readonly wasRead: () => boolean
}

interface WorkerFamilies {
  readonly families: readonly MetricFamily[]
  readonly wasRead: boolean
}

const NAME = 'metrics'

// `own` of this process, or of another worker, has written the value under this name
const partOf = (metrics: WorkerMetrics) => (metrics[NAME] ?? { families: [], wasRead: true }) as unknown as WorkerFamilies

/** Reads all sources. One that fails is left out, and the log says so. */
export function createMetricsCollector(sources: SlotView<MetricSource>, peers: Peers | undefined, log: Log): MetricsCollector {
  const retained = createEndedWorkerTotals()
  let wasRead = false
  const readOne = async ([name, source]: [string, MetricSource], ctx: CallContext) => {
    try {
      return familiesIn(name, await source.read(ctx))
    } catch (error) {
      log.warn({ source: name, err: error }, `the metrics of ${name} are missing: ${messageOf(error)}`)
      return []
    }
  }
  const readOwn = async (ctx: CallContext) => {
    const read = await Promise.all(sources.entries().map(entry => readOne(entry, ctx)))
    return read.flat()
  }
  const readAll = async (among: Peers, ctx: CallContext): Promise<readonly WorkerMetrics[]> => {
    const all = await among.metrics(ctx)
    if (all.every(one => one.ended || partOf(one).wasRead)) return all
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

/** Counts of workers that have ended: they are this worker's now, so that no total falls. */
interface EndedWorkerTotals {
  /** Takes what can only grow; what was current is gone with its worker. */
  take(families: readonly MetricFamily[]): void
  read(): MetricFamily[]
}

/** So many series of a family are kept apart: names that callers invent must not pile up over reloads. */
const SERIES = 2_000

interface RetainedFamily extends Omit<MetricFamily, 'values'> {
  readonly series: Map<string, Sample>
}

function createEndedWorkerTotals(): EndedWorkerTotals {
  const kept = new Map<string, RetainedFamily>()
  const familyOf = ({ values: _values, ...family }: MetricFamily): RetainedFamily => {
    const one = kept.get(family.name) ?? { ...family, series: new Map<string, Sample>() }
    kept.set(family.name, one)
    return one
  }
  return {
    take(families) {
      for (const family of families.filter(grows)) addTo(familyOf(family).series, family.values)
    },
    read: () => [...kept.values()].map(({ series, ...family }) => ({ ...family, values: [...series.values()] })),
  }
}

/** Whether a family counts what was, not what is. */
const grows = ({ type, aggregator }: MetricFamily): boolean => type !== 'gauge' && aggregator === 'sum'

/** About a microsecond, as a power of two. */
const STEP = 2 ** -20

/** Whole steps add up to the same in any order: sums of other fractions fall by their last digit when a worker ends, and to Prometheus that is a restart. */
const summable = (family: MetricFamily): MetricFamily =>
  grows(family)
    ? { ...family, values: family.values.map(one => ({ ...one, value: Math.floor(one.value / STEP) * STEP })) }
    : family

function addTo(series: Map<string, Sample>, samples: readonly Sample[]) {
  for (const sample of samples) {
    const key = keyOf(sample)
    const [name, one] = series.has(key) || series.size < SERIES ? [key, sample] : otherOf(sample)
    series.set(name, { ...one, value: one.value + (series.get(name)?.value ?? 0) })
  }
}

const keyOf = ({ metricName = '', labels }: Sample) =>
  `${metricName} ${JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))}`

function otherOf(sample: Sample): [string, Sample] {
  const labels = Object.fromEntries(Object.entries(sample.labels).map(([name, value]) => [name, name === 'le' ? value : 'other']))
  const other = { ...sample, labels }
  return [keyOf(other), other]
}

/** All workers' figures as one text. */
export function createExposition(metrics: MetricsCollector, http: Http): Route {
  return {
    method: 'GET',
    path: '/metrics',
    summary: 'Figures for Prometheus',
    scope: 'read',
    uncounted: true,
    responses: {
      '200': { description: 'Text in the Prometheus exposition format.', schema: { type: 'string' }, contentType: 'text/plain' },
    },
    async handle(_request, ctx) {
      const workers = await metrics.read(ctx)
      const { requestsActive } = await http.metrics(ctx)
      const active = gauge('svc_requests_active', 'Requests under way.', requestsActive)
      return exposed([[active], ...workers.map(families => families.map(withPointedBounds))])
    },
  }
}

async function exposed(workers: readonly (readonly MetricFamily[])[]) {
  const { AggregatorRegistry } = await import('prom-client')
  const registry = AggregatorRegistry.aggregate(workers as unknown as object[])
  return { text: await registry.metrics(), headers: { 'Content-Type': registry.contentType } }
}
