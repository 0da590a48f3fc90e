import { defineSlot, type CallContext } from '@svc/core'

export interface Sample {
  readonly labels: { readonly [label: string]: string | number }
  readonly value: number
  /** For histograms: the full name of the series (`…_bucket`, `…_sum`, `…_count`). */
  readonly metricName?: string
}

/** One family of metrics, in the form that prom-client reads and sums. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How the figures of several workers are joined. */
  readonly aggregator: 'sum' | 'first' | 'max'
  readonly values: readonly Sample[]
}

/** Something that has figures: read when they are asked for, counted as the plugin likes. */
export interface MetricSource {
  read(ctx: CallContext): Promise<readonly MetricFamily[]>
}

/** Sources of metrics by plugin. */
export const MetricSources = defineSlot<MetricSource>('metric_sources', { api: 1, methods: { read: 'call' } })
