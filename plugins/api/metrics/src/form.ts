import { svcError } from '@svc/core'
import type { MetricFamily, Sample } from '@svc/core/contracts'

const NAME = /^[a-zA-Z_:][\w:]{0,199}$/
const TYPES: readonly unknown[] = ['counter', 'gauge', 'histogram'] satisfies MetricFamily['type'][]
const AGGREGATORS: readonly unknown[] = ['sum', 'first', 'max'] satisfies MetricFamily['aggregator'][]

/** Names of labels are written into the exposition as they are. */
const LABEL = /^[a-zA-Z_]\w{0,199}$/

const isLabel = ([name, value]: [string, unknown]) => LABEL.test(name) && (typeof value === 'string' || typeof value === 'number')
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value)

function isSample(sample: unknown): sample is Sample {
  if (!isObject(sample)) return false
  const { labels, value, metricName } = sample as Partial<Sample>
  const isNamed = metricName === undefined || (typeof metricName === 'string' && NAME.test(metricName))
  return typeof value === 'number' && isNamed && isObject(labels) && Object.entries(labels).every(isLabel)
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

const SERIES = ['', '_bucket', '_sum', '_count']

function withPrefix(source: string, prefix: string, family: MetricFamily): MetricFamily {
  const { name, values } = family
  const named = (text: string) => (text.startsWith(prefix) ? text : prefix + text)
  const own = new Set(SERIES.map(end => name + end))
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
