import type { CallStats, Host, HookStats, CallContext } from '@svc/core'
import type { MetricFamily } from '@svc/core/contracts'
import { counter } from './families.ts'

/** What the host counts itself: what each plugin does on hooks and in slots. */
export async function hostMetrics(host: Host, ctx: CallContext): Promise<MetricFamily[]> {
  const report = await host.report(ctx)
  const family = (name: string, help: string, value: (one: HookStats) => number) =>
    counter(
      name,
      help,
      report.hooks.map(one => ({ labels: { plugin: one.plugin, hook: one.hook }, value: value(one) }))
    )
  const calls = (name: string, help: string, value: (one: CallStats) => number) =>
    counter(
      name,
      help,
      report.calls
        .filter(one => one.calls > 0)
        .map(one => ({ labels: { plugin: one.plugin, slot: one.slot, method: one.method }, value: value(one) }))
    )
  return [
    family('svc_hook_calls_total', 'Calls of a plugin on a hook.', one => one.calls),
    family('svc_hook_errors_total', 'Calls of a plugin on a hook that failed.', one => one.errors),
    family('svc_hook_seconds_total', 'Seconds that a plugin took on a hook.', one => one.ms / 1000),
    calls('svc_plugin_calls_total', 'Calls of what a plugin adds.', one => one.calls),
    calls('svc_plugin_errors_total', 'Calls of what a plugin adds that failed.', one => one.errors),
    calls('svc_plugin_seconds_total', 'Seconds that calls of what a plugin adds took; streams count none.', one => one.ms / 1000),
  ]
}
