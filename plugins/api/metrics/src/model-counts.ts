import type { MetricFamily, ModelDone, ModelRef, Sample } from '@svc/core/contracts'
import { createModelNames } from '@svc/plugin-kit'

/** Histogram bounds: seconds to the first event. */
const FIRST_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

interface Series {
  readonly provider: string
  readonly model: string
  readonly outcomes: Map<string, number>
  readonly first: { readonly counts: number[]; sum: number }
  seconds: number
  input: number
  output: number
  cached: number
  reasoning: number
}

const newSeries = (provider: string, model: string): Series => ({
  provider,
  model,
  outcomes: new Map(),
  first: { counts: FIRST_BOUNDS.map(() => 0).concat(0), sum: 0 },
  seconds: 0,
  input: 0,
  output: 0,
  cached: 0,
  reasoning: 0,
})

/** Counts calls, tokens and seconds by provider and model. Replies without a model call do not count. */
export interface ModelCounts {
  count(done: ModelDone): void
  read(): MetricFamily[]
}

export function createModelCounts(): ModelCounts {
  const all = new Map<string, Series>()
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

function addTo(series: Series, { usage, durationMs, firstMs, failure, events }: ModelDone) {
  // a call without failure and without events was cancelled by its caller
  const outcome = failure?.kind ?? (events ? 'ok' : 'cancelled')
  series.outcomes.set(outcome, (series.outcomes.get(outcome) ?? 0) + 1)
  series.seconds += durationMs / 1000
  series.input += usage.input
  series.output += usage.output
  series.cached += usage.cached ?? 0
  series.reasoning += usage.reasoning ?? 0
  // a call that failed before its first event has none
  if (firstMs <= 0) return
  series.first.counts[bucketOf(FIRST_BOUNDS, firstMs / 1000)]!++
  series.first.sum += firstMs / 1000
}

const labelsOf = ({ provider, model }: Series) => ({ provider, model })

function familiesOf(series: readonly Series[]): MetricFamily[] {
  const each = (pick: (series: Series) => number) => series.map(item => ({ labels: labelsOf(item), value: pick(item) }))
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
    histogram('svc_model_first_token_seconds', 'Seconds to the first event of a model.', FIRST_BOUNDS, firsts),
  ]
}

type Labels = Sample['labels']

export const counter = (name: string, help: string, values: readonly Sample[]): MetricFamily => ({
  name,
  help,
  type: 'counter',
  aggregator: 'sum',
  values,
})
export const gauge = (name: string, help: string, value: number): MetricFamily => ({
  name,
  help,
  type: 'gauge',
  aggregator: 'sum',
  values: [{ labels: {}, value }],
})

/** Number of values in each bucket; the last bucket is above all bounds. */
interface Distribution {
  readonly counts: readonly number[]
  readonly sum: number
}

/** Returns the index of the bucket for a value: the first bound that it does not exceed, or the last bucket. */
export function bucketOf(bounds: readonly number[], value: number): number {
  const at = bounds.findIndex(bound => value <= bound)
  return at === -1 ? bounds.length : at
}

/** Creates a histogram in the form of prom-client: cumulative buckets, sum and count of each series. */
export function histogram(
  name: string,
  help: string,
  bounds: readonly number[],
  series: readonly (readonly [Labels, Distribution])[]
): MetricFamily {
  return {
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    values: series.flatMap(([labels, item]) => samplesOf(name, bounds, labels, item)),
  }
}

function samplesOf(name: string, bounds: readonly number[], labels: Labels, { counts, sum }: Distribution): Sample[] {
  let below = 0
  const buckets = [...bounds, '+Inf'].map((le, at) => {
    below += counts[at]!
    return { labels: { le, ...labels }, value: below, metricName: `${name}_bucket` }
  })
  return [...buckets, { labels, value: sum, metricName: `${name}_sum` }, { labels, value: below, metricName: `${name}_count` }]
}

/** Formats whole bounds with a decimal point, as the HTTP contract requires: `le="1.0"`. */
export function withPointedBounds(family: MetricFamily): MetricFamily {
  if (family.type !== 'histogram') return family
  return { ...family, values: family.values.map(sample => ({ ...sample, labels: pointed(sample.labels) })) }
}

function pointed(labels: Labels): Labels {
  const { le } = labels
  return typeof le === 'number' && Number.isInteger(le) ? { ...labels, le: le.toFixed(1) } : labels
}
