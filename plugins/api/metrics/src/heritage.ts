import type { MetricFamily, Sample } from '@svc/core/contracts'

/** Counts of workers that have ended: they are this worker's now, so that no total falls. */
export interface Heritage {
  /** Takes what can only grow; what was current is gone with its worker. */
  take(families: readonly MetricFamily[]): void
  read(): MetricFamily[]
}

/** So many series of a family are kept apart: names that callers invent must not pile up over reloads. */
const SERIES = 2_000

interface Kept extends Omit<MetricFamily, 'values'> {
  readonly series: Map<string, Sample>
}

export function createHeritage(): Heritage {
  const kept = new Map<string, Kept>()
  const familyOf = ({ values: _values, ...family }: MetricFamily): Kept => {
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
export const grows = ({ type, aggregator }: MetricFamily): boolean => type !== 'gauge' && aggregator === 'sum'

/** About a microsecond, as a power of two. */
const STEP = 2 ** -20

/** Whole steps add up to the same in any order: sums of other fractions fall by their last digit when a worker ends, and to Prometheus that is a restart. */
export const summable = (family: MetricFamily): MetricFamily =>
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
