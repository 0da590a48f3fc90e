import { svcError } from '@svc/core'
import type { MetricFamily, Sample } from '@svc/core/contracts'

const NAME = /^[a-zA-Z_:][\w:]{0,199}$/
const TYPES: readonly unknown[] = ['counter', 'gauge', 'histogram'] satisfies MetricFamily['type'][]
const AGGREGATORS: readonly unknown[] = ['sum', 'first', 'max'] satisfies MetricFamily['aggregator'][]

const isLabel = (value: unknown) => typeof value === 'string' || typeof value === 'number'
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)

function isSample(sample: unknown): sample is Sample {
  if (!isObject(sample)) return false
  const { labels, value, metricName } = sample as Partial<Sample>
  const isNamed = metricName === undefined || (typeof metricName === 'string' && NAME.test(metricName))
  return typeof value === 'number' && isNamed && isObject(labels) && Object.values(labels).every(isLabel)
}

function isFamily(family: unknown): family is MetricFamily {
  if (!isObject(family)) return false
  const { name, help, type, aggregator, values } = family as Partial<MetricFamily>
  const isHead = typeof name === 'string' && NAME.test(name) && typeof help === 'string'
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
