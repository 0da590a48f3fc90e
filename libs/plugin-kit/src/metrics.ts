import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import type { MetricFamily, Sample, ModelRef } from '@svc/core/contracts'

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

/**
 * Returns the network of a client: its IPv4 address, also from an IPv4-mapped IPv6 address, or its IPv6 /64, which is the smallest network that a client gets
 * (`2001:db8::1` is in `2001:db8:0:0::/64`). All other texts count as one client, so that a caller cannot invent clients.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return 'none'
  if (isIPv4(address)) return address
  const bare = address.split('%', 1)[0]!
  return isIPv6(bare) ? networkOfIPv6(bare) : 'none'
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/
const GROUPS = 8

function networkOfIPv6(address: string): string {
  const shortest = new SocketAddress({ family: 'ipv6', address }).address
  const mapped = MAPPED.exec(shortest)?.[1]
  if (mapped) return mapped
  const [head, tail] = shortest.split('::').map(side => (side === '' ? [] : side.split(':')))
  const left = Array<string>(GROUPS - head!.length - (tail?.length ?? 0)).fill('0')
  return `${[...head!, ...left, ...(tail ?? [])].slice(0, GROUPS / 2).join(':')}::/64`
}

/** Returns the name of a model for metric labels. */
export type ModelNames = (ref: ModelRef) => ModelRef

/** Limit of distinct model names. */
const MODELS = 200

/** Creates names for metric labels: the first 200 models keep their names, further ones of a provider become `other`, because callers can invent names. */
export function createModelNames(): ModelNames {
  const known = new Set<string>()
  return ({ provider, model }) => {
    const key = `${provider}\n${model}`
    if (known.size < MODELS) known.add(key)
    return { provider, model: known.has(key) ? model : 'other' }
  }
}
