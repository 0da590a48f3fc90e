import type { MetricFamily, Sample } from '@svc/core/contracts'

type Labels = Sample['labels']

/** Creates a family of metrics. The values of several workers are added up; `max` takes the largest one instead. */
export const metricFamily = (
  type: MetricFamily['type'],
  name: string,
  help: string,
  values: readonly Sample[],
  aggregator: MetricFamily['aggregator'] = 'sum'
): MetricFamily => ({ name, help, type, aggregator, values })

/** Creates a family of counters. */
export const counter = (name: string, help: string, values: readonly Sample[]): MetricFamily =>
  metricFamily('counter', name, help, values)

/** The distribution of values, for one series of a histogram. */
export interface Distribution {
  readonly count: number
  readonly sum: number
  add(value: number): void
  /** The samples in the form of prom-client: cumulative buckets, sum and count. */
  samples(name: string, labels: Labels): readonly Sample[]
}

/** Creates an empty distribution over buckets with these upper bounds, in ascending order. */
export function createDistribution(bounds: readonly number[]): Distribution {
  /** The number of values in each bucket; the last bucket is above all bounds. */
  const buckets = [...bounds, Number.POSITIVE_INFINITY].map(() => 0)
  let [count, sum] = [0, 0]
  return {
    get count() {
      return count
    },
    get sum() {
      return sum
    },
    add(value) {
      const at = bounds.findIndex(bound => value <= bound)
      buckets[at === -1 ? bounds.length : at]! += 1
      count += 1
      sum += value
    },
    samples(name, labels) {
      let below = 0
      const cumulative = [...bounds, '+Inf'].map((le, at) => {
        below += buckets[at]!
        return { labels: { le, ...labels }, value: below, metricName: `${name}_bucket` }
      })
      return [
        ...cumulative,
        { labels, value: sum, metricName: `${name}_sum` },
        { labels, value: count, metricName: `${name}_count` },
      ]
    },
  }
}

/** Creates a histogram of several series. */
export const histogram = (name: string, help: string, series: Iterable<readonly [Labels, Distribution]>): MetricFamily =>
  metricFamily(
    'histogram',
    name,
    help,
    [...series].flatMap(([labels, distribution]) => distribution.samples(name, labels))
  )
