import type { MetricFamily, ModelDone, ModelRef, RequestDone, Sample } from '@svc/core/contracts'
import { counter, createDistribution, createModelNames, type Distribution, histogram } from '@svc/plugin-kit'

/** Histogram bounds: seconds to the end of an answer. */
const ANSWER_BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

interface RequestSeries {
  readonly labels: { readonly method: string; readonly route: string; readonly status: number }
  readonly seconds: Distribution
}

/** Counts answers by method, route and status. Callers cannot create new label values. */
export interface RequestCounts {
  readonly count: (done: RequestDone) => void
  read(): MetricFamily[]
}

export function createRequestCounts(): RequestCounts {
  const all = new Map<string, RequestSeries>()
  const seriesOf = ({ method, route, status }: Omit<RequestDone, 'seconds'>) => {
    const key = `${method} ${status} ${route}`
    let series = all.get(key)
    if (!series)
      all.set(
        key,
        (series = {
          labels: { method: method || 'none', route: route || 'none', status },
          seconds: createDistribution(ANSWER_BOUNDS),
        })
      )
    return series
  }
  // the series of /metrics starts with 0, otherwise Prometheus would not count its first request
  seriesOf({ method: 'GET', route: '/metrics', status: 200 })
  return {
    count(done) {
      seriesOf(done).seconds.add(done.seconds)
    },
    read() {
      const series = [...all.values()]
      return [
        counter(
          'svc_requests_total',
          'Requests answered.',
          series.map(({ labels, seconds }) => ({ labels, value: seconds.count }))
        ),
        histogram(
          'svc_request_duration_seconds',
          'Seconds from a request to the end of its answer.',
          series.map(({ labels, seconds }) => [labels, seconds] as const)
        ),
      ]
    },
  }
}

/** Histogram bounds: seconds to the first event. */
const FIRST_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

interface ModelSeries {
  readonly provider: string
  readonly model: string
  readonly outcomes: Map<string, number>
  readonly first: Distribution
  seconds: number
  input: number
  output: number
  cached: number
  reasoning: number
}

const newSeries = (provider: string, model: string): ModelSeries => ({
  provider,
  model,
  outcomes: new Map(),
  first: createDistribution(FIRST_BOUNDS),
  seconds: 0,
  input: 0,
  output: 0,
  cached: 0,
  reasoning: 0,
})

/** Counts calls, tokens and seconds by provider and model. Replies without a model call do not count. */
export interface ModelCounts {
  readonly count: (done: ModelDone) => void
  read(): MetricFamily[]
}

export function createModelCounts(): ModelCounts {
  const all = new Map<string, ModelSeries>()
  const nameOf = createModelNames()
  const seriesOf = (ref: ModelRef) => {
    const { provider, model } = nameOf(ref)
    const key = `${provider} ${model}`
    const series = all.get(key) ?? newSeries(provider, model)
    all.set(key, series)
    return series
  }
  return {
    count(done) {
      if (!done.answered) addTo(seriesOf(done.selected), done)
    },
    read: () => familiesOf([...all.values()]),
  }
}

function addTo(series: ModelSeries, { usage, durationMs, firstMs, failure, events }: ModelDone) {
  // a call without failure and without events was cancelled by its caller
  const outcome = failure?.kind ?? (events ? 'ok' : 'cancelled')
  series.outcomes.set(outcome, (series.outcomes.get(outcome) ?? 0) + 1)
  series.seconds += durationMs / 1000
  series.input += usage.input
  series.output += usage.output
  series.cached += usage.cached ?? 0
  series.reasoning += usage.reasoning ?? 0
  // a call that failed before its first event has none
  if (firstMs > 0) series.first.add(firstMs / 1000)
}

const labelsOf = ({ provider, model }: ModelSeries) => ({ provider, model })

function familiesOf(series: readonly ModelSeries[]): MetricFamily[] {
  const each = (pick: (series: ModelSeries) => number) => series.map(item => ({ labels: labelsOf(item), value: pick(item) }))
  const calls = series.flatMap(item =>
    [...item.outcomes].map(([outcome, value]) => ({ labels: { ...labelsOf(item), outcome }, value }))
  )
  const tokens = series.flatMap(item =>
    (['input', 'output'] as const).map(kind => ({ labels: { ...labelsOf(item), kind }, value: item[kind] }))
  )
  const firsts = series.map(item => [labelsOf(item), item.first] as const)
  return [
    counter(
      'svc_model_calls_total',
      'Calls of models; outcome is ok, cancelled (the caller disconnected) or the kind of failure.',
      calls
    ),
    counter('svc_tokens_total', 'Tokens that models received and returned.', tokens),
    counter(
      'svc_cached_tokens_total',
      'Input tokens from the cache of the provider, a part of svc_tokens_total.',
      each(item => item.cached)
    ),
    counter(
      'svc_reasoning_tokens_total',
      'Reasoning tokens in the output, a part of svc_tokens_total.',
      each(item => item.reasoning)
    ),
    counter(
      'svc_model_seconds_total',
      'Seconds in calls of models.',
      each(item => item.seconds)
    ),
    histogram('svc_model_first_token_seconds', 'Seconds to the first event of a model.', firsts),
  ]
}

type Labels = Sample['labels']

/** Formats whole bounds with a decimal point, as the HTTP contract requires: `le="1.0"`. */
export function withPointedBounds(family: MetricFamily): MetricFamily {
  if (family.type !== 'histogram') return family
  return { ...family, values: family.values.map(sample => ({ ...sample, labels: pointed(sample.labels) })) }
}

function pointed(labels: Labels): Labels {
  const { le } = labels
  return typeof le === 'number' && Number.isInteger(le) ? { ...labels, le: le.toFixed(1) } : labels
}
