import type { MetricFamily, RequestDone } from '@svc/core/contracts'
import { counter, createDistribution, type Distribution, histogram } from '@svc/plugin-kit'

/** Histogram bounds in seconds. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

interface Series {
  readonly labels: { readonly method: string; readonly route: string; readonly status: number }
  readonly seconds: Distribution
}

/** Counts answers by method, route and status. Callers cannot create new label values. */
export interface RequestCounts {
  count(done: RequestDone): void
  read(): MetricFamily[]
}

export function createRequestCounts(): RequestCounts {
  const all = new Map<string, Series>()
  const seriesOf = ({ method, route, status }: Omit<RequestDone, 'seconds'>) => {
    const key = `${method} ${status} ${route}`
    let series = all.get(key)
    if (!series)
      all.set(
        key,
        (series = {
          labels: { method: method || 'none', route: route || 'none', status },
          seconds: createDistribution(BOUNDS),
        })
      )
    return series
  }
  // the series of /metrics starts with 0, otherwise Prometheus would not count its first request
  seriesOf({ method: 'GET', route: '/metrics', status: 200 })
  return {
    count(done) {
      seriesOf(done).seconds.add(done.seconds)
    },
    read() {
      const series = [...all.values()]
      return [
        counter(
          'svc_requests_total',
          'Requests answered.',
          series.map(({ labels, seconds }) => ({ labels, value: seconds.count }))
        ),
        histogram(
          'svc_request_duration_seconds',
          'Seconds from a request to the end of its answer.',
          series.map(({ labels, seconds }) => [labels, seconds] as const)
        ),
      ]
    },
  }
}
