import type { JobState, MetricFamily, MetricSource, Sample } from '@svc/core/contracts'

/** Counts of the attempts of this worker. */
export interface JobMetrics extends MetricSource {
  ended(kind: string, state: JobState): void
}

/** `running`: number of running jobs of this worker by kind. */
export function createMetrics(running: () => ReadonlyMap<string, number>): JobMetrics {
  const counts = new Map<string, { readonly labels: { readonly kind: string; readonly outcome: string }; value: number }>()
  return {
    ended(kind, state) {
      const outcome = state === 'queued' ? 'retried' : state === 'running' ? 'lost' : state
      const key = `${kind}/${outcome}`
      const entry = counts.get(key) ?? { labels: { kind, outcome }, value: 0 }
      entry.value += 1
      counts.set(key, entry)
    },
    async read(): Promise<MetricFamily[]> {
      const active: Sample[] = [...running()].map(([kind, value]) => ({ labels: { kind }, value }))
      return [
        {
          name: 'svc_job_attempts_total',
          help: 'Attempts at jobs by kind and outcome (completed, failed, cancelled, retried, lost)',
          type: 'counter',
          aggregator: 'sum',
          values: [...counts.values()].map(({ labels, value }) => ({ labels, value })),
        },
        { name: 'svc_jobs_running', help: 'Running jobs by kind', type: 'gauge', aggregator: 'sum', values: active },
      ]
    },
  }
}
