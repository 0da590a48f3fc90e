import type { Host, HookFigures, Use } from '@svc/core'
import type { Http, MetricFamily } from '@svc/core/contracts'
import { counter, gauge } from './families.ts'

/** What the host and the server count themselves: taps of each plugin, requests under way. */
export async function hostFigures(host: Host, http: Http, use: Use): Promise<MetricFamily[]> {
  const [report, figures] = await Promise.all([host.report(use), http.figures(use)])
  const family = (name: string, help: string, value: (one: HookFigures) => number) =>
    counter(
      name,
      help,
      report.hooks.map(one => ({ labels: { plugin: one.plugin, hook: one.hook }, value: value(one) }))
    )
  return [
    gauge('svc_requests_active', 'Requests under way.', figures.requestsActive),
    family('svc_hook_calls_total', 'Calls of a plugin on a hook.', one => one.calls),
    family('svc_hook_errors_total', 'Calls of a plugin on a hook that failed.', one => one.errors),
    family('svc_hook_seconds_total', 'Seconds that a plugin took on a hook.', one => one.ms / 1000),
  ]
}
