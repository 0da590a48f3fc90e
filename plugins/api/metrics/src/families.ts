import type { MetricFamily, Sample } from '@svc/core/contracts'

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

/** Counts of what lay under each bound and, last, above all of them. */
export interface Distribution {
  readonly counts: readonly number[]
  readonly sum: number
}

/** Where a value is counted: the first bound that it does not exceed, or beyond the last. */
export function bucketOf(bounds: readonly number[], value: number): number {
  const at = bounds.findIndex(bound => value <= bound)
  return at === -1 ? bounds.length : at
}

/** A histogram as prom-client has it: cumulative buckets, sum and count of each series. */
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
    values: series.flatMap(([labels, one]) => samplesOf(name, bounds, labels, one)),
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

/** Bounds are written with a point, as the documents have them: `le="1.0"`. */
export function withPointedBounds(family: MetricFamily): MetricFamily {
  if (family.type !== 'histogram') return family
  return { ...family, values: family.values.map(sample => ({ ...sample, labels: pointed(sample.labels) })) }
}

function pointed(labels: Labels): Labels {
  const { le } = labels
  return typeof le === 'number' && Number.isInteger(le) ? { ...labels, le: le.toFixed(1) } : labels
}
