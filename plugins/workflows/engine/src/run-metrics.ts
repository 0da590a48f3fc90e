import type { MetricFamily, RunStatus, Sample } from '@svc/core/contracts'
import type { Entry, History } from './history.ts'
import type { RunRecord } from './space.ts'

/** Metrics of the runs of this worker. */
export interface RunMetrics {
  stored(entries: readonly Entry[], history: History): void
  ended(record: RunRecord): void
  /** `waiting` counts the runs of all workers. It is undefined while the store is unavailable. */
  families(waiting: number | undefined): MetricFamily[]
}

export interface RunMetricsOptions {
  /** Whether a plugin or a file defines this workflow. Callers can invent other names. */
  readonly isNamed: (workflow: string) => boolean
  /** Number of runs that this worker executes. */
  readonly active: () => number
}

/** Maximum number of workflow labels. Runs of other workflows count as `other`. */
const NAMES = 200
/** Upper bounds of the histogram buckets, in seconds. */
const BOUNDS = [0.01, 0.1, 0.5, 1, 5, 30, 120, 600] as const

type Ended = 'completed' | 'failed' | 'cancelled'
interface Steps {
  readonly type: string
  readonly counts: Record<Ended, number>
  seconds: number
  /** RunMetrics of single buckets. The metrics report cumulative counts. */
  readonly buckets: number[]
}

export function createRunMetrics({ isNamed, active }: RunMetricsOptions): RunMetrics {
  const runs = new Map<string, { readonly workflow: string; readonly status: RunStatus; count: number }>()
  const names = new Set<string>()
  const steps = new Map<string, Steps>()

  const nameOf = (workflow: string) => {
    if (!names.has(workflow) && names.size < NAMES && isNamed(workflow)) names.add(workflow)
    return names.has(workflow) ? workflow : 'other'
  }
  const stepsOf = (type: string) => {
    const there = steps.get(type)
    if (there) return there
    const made = { type, counts: { completed: 0, failed: 0, cancelled: 0 }, seconds: 0, buckets: BOUNDS.map(() => 0) }
    steps.set(type, made)
    return made
  }
  return {
    stored(entries, history) {
      for (const entry of entries) {
        if (entry.t !== 'done' && entry.t !== 'failed') continue
        const { begun } = history.steps.get(entry.s)!
        count(stepsOf(begun.type), entry.t === 'done' ? 'completed' : 'failed', (entry.at - begun.at) / 1_000)
      }
    },
    ended({ workflow: given, status }) {
      const workflow = nameOf(given)
      const there = runs.get(`${workflow}/${status}`) ?? { workflow, status, count: 0 }
      there.count += 1
      runs.set(`${workflow}/${status}`, there)
    },
    families: waiting => [
      family(
        'svc_workflow_runs_total',
        'Completed and failed runs.',
        'counter',
        [...runs.values()].map(({ count: value, ...labels }) => ({ labels, value }))
      ),
      family('svc_workflow_steps_total', 'Completed and failed steps.', 'counter', [...steps.values()].flatMap(totalsOf)),
      family(
        'svc_workflow_step_seconds',
        'Duration of steps, including the time they waited.',
        'histogram',
        [...steps.values()].flatMap(histogramOf)
      ),
      family('svc_workflow_runs_active', 'Runs in progress.', 'gauge', [{ labels: {}, value: active() }]),
      ...(waiting === undefined ? [] : [waitingFamily(waiting)]),
    ],
  }
}

function count(steps: Steps, status: Ended, seconds: number): void {
  steps.counts[status] += 1
  steps.seconds += seconds
  let at = 0
  while (at < BOUNDS.length && seconds > BOUNDS[at]!) at += 1
  if (at < BOUNDS.length) steps.buckets[at]! += 1
}

const family = (name: string, help: string, type: MetricFamily['type'], values: readonly Sample[]): MetricFamily => ({
  name,
  help,
  type,
  aggregator: 'sum',
  values,
})

/** Each worker reports the number for all workers. */
const waitingFamily = (value: number): MetricFamily => ({
  name: 'svc_workflow_runs_waiting',
  help: 'Runs that wait for people, events or time, among the first 1000 open runs.',
  type: 'gauge',
  aggregator: 'max',
  values: [{ labels: {}, value }],
})

const totalsOf = ({ type, counts }: Steps): Sample[] =>
  Object.entries(counts).flatMap(([status, value]) => (value > 0 ? [{ labels: { type, status }, value }] : []))

function histogramOf({ type, counts, seconds, buckets }: Steps): Sample[] {
  const name = 'svc_workflow_step_seconds'
  const all = counts.completed + counts.failed + counts.cancelled
  let value = 0
  const within = BOUNDS.map((le, at) => ({ metricName: `${name}_bucket`, labels: { type, le }, value: (value += buckets[at]!) }))
  return [
    ...within,
    { metricName: `${name}_bucket`, labels: { type, le: '+Inf' }, value: all },
    { metricName: `${name}_sum`, labels: { type }, value: seconds },
    { metricName: `${name}_count`, labels: { type }, value: all },
  ]
}
