import type { Host, HookFigures, Use } from '@svc/core'
import type { MetricFamily } from '@svc/core/contracts'
import { counter } from './families.ts'

/** What the host counts itself: taps of each plugin. */
export async function hostFigures(host: Host, use: Use): Promise<MetricFamily[]> {
  const report = await host.report(use)
  const family = (name: string, help: string, value: (one: HookFigures) => number) =>
    counter(
      name,
      help,
      report.hooks.map(one => ({ labels: { plugin: one.plugin, hook: one.hook }, value: value(one) }))
    )
  return [
    family('svc_hook_calls_total', 'Calls of a plugin on a hook.', one => one.calls),
    family('svc_hook_errors_total', 'Calls of a plugin on a hook that failed.', one => one.errors),
    family('svc_hook_seconds_total', 'Seconds that a plugin took on a hook.', one => one.ms / 1000),
  ]
}
