import { type CallContext, defineSlot } from '@svc/core'
import type { Json } from './store.ts'

export type HealthWord = 'healthy' | 'degraded' | 'unhealthy'

/** What one part says of itself, never a secret; `detail` is told in `/api/v1/status` of `providers` and `cache`. */
export interface CheckReport {
  readonly status: HealthWord
  /** Why it is not healthy, for the log and for whoever runs the server: no secret, no path of this machine. */
  readonly reason?: string
  readonly detail?: { readonly [key: string]: Json | undefined }
}

/** A part that can be asked how it is. Answers from a cache where probing costs; never a billed call. */
export interface Check {
  probe(ctx: CallContext): Promise<CheckReport>
  /** The same for `/api/v1/status`, with figures in `detail` that are asked of all workers: no health check waits for these. Without it, `probe` is all there is. */
  status?(ctx: CallContext): Promise<CheckReport>
  /**
   * A look at everything, as long as it takes: for `svc doctor`. Without it, `probe` is all there is. Of what is kept on a disk, `detail` tells `path` and
   * `free_bytes`.
   */
  examine?(ctx: CallContext): Promise<CheckReport>
}

/** Checks by the word under which `/health` shows them: `database`, `providers`, `cache`. */
export const Checks = defineSlot<Check>('checks', { api: 1, methods: { probe: 'call', status: 'call', examine: 'call' } })

/** What else `/health` tells to everybody, as members of its record: facts without detail. Answers at once. */
export interface HealthFact {
  facts(ctx: CallContext): Promise<{ readonly [member: string]: Json }>
}
/** More facts of the health record, by plugin. */
export const HealthFacts = defineSlot<HealthFact>('health_facts', { api: 1, methods: { facts: 'call' } })

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
