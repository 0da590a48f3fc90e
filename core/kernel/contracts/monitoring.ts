import { type CallContext, defineSlot } from '@svc/core'
import type { Json } from './store.ts'

export type HealthWord = 'healthy' | 'degraded' | 'unhealthy'

/** Report of one health check, without secrets. `/api/v1/status` shows the `detail` of `providers` and `cache`. */
export interface CheckReport {
  readonly status: HealthWord
  /** Why it is not healthy, for the log and the operator: no secret, no path of this machine. */
  readonly reason?: string
  /** The code of the error, and what to do, in the imperative: `svc doctor` shows both. */
  readonly code?: string
  readonly hint?: string
  readonly detail?: { readonly [key: string]: Json | undefined }
}

/** A health check of one part. It answers from a cache when probing is expensive, and never makes a billed call. */
export interface Check {
  probe(ctx: CallContext): Promise<CheckReport>
  /**
   * A more detailed report for `/api/v1/status`, with metrics of all workers in `detail`. Health checks do not wait for it.
   * Default: `probe`.
   */
  status?(ctx: CallContext): Promise<CheckReport>
  /**
   * A thorough check for `svc doctor`, however long it takes. Default: `probe`. For data on a disk, `detail` has `path` and
   * `free_bytes`.
   */
  examine?(ctx: CallContext): Promise<CheckReport>
}

/** Checks by their name in `/health`: `database`, `providers`, `cache`. */
export const Checks = defineSlot<Check>('checks', { api: 1, methods: { probe: 'call', status: 'call', examine: 'call' } })

/** Public facts that `/health` adds to its record. Returns at once. */
export interface HealthFact {
  facts(ctx: CallContext): Promise<{ readonly [member: string]: Json }>
}
/** Further facts of the health record, by plugin. */
export const HealthFacts = defineSlot<HealthFact>('health_facts', { api: 1, methods: { facts: 'call' } })

export interface Sample {
  readonly labels: { readonly [label: string]: string | number }
  readonly value: number
  /** For histograms: the full name of the series (`…_bucket`, `…_sum`, `…_count`). */
  readonly metricName?: string
}

/** One family of metrics, in the form that prom-client reads and sums. */
export interface MetricFamily {
  /** The metrics plugin adds the prefix of your plugin: `calls_total` of `svc-plugin-weather` is `plugin_weather_calls_total`. */
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How to aggregate the values of several workers. */
  readonly aggregator: 'sum' | 'first' | 'max'
  readonly values: readonly Sample[]
}

/** A source of metrics, read on request. */
export interface MetricSource {
  read(ctx: CallContext): Promise<readonly MetricFamily[]>
}

/** Sources of metrics by plugin. */
export const MetricSources = defineSlot<MetricSource>('metric_sources', { api: 1, methods: { read: 'call' } })
