import type { CallContext, CallStats, HookStats, Host } from '@svc/core'
import type { MetricFamily } from '@svc/core/contracts'
import { counter } from './model-counts.ts'

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

// Node's figures are those of the process, however many hosts it has; what collects them cannot be taken down again.
let collecting: Promise<() => Promise<MetricFamily[]>> | undefined

/** Begins to collect Node's own figures (memory, event loop, garbage collection), once a process. Loads prom-client. */
export function collectNodeMetrics(): Promise<() => Promise<MetricFamily[]>> {
  collecting ??= collect()
  return collecting
}

async function collect() {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return async () => ((await registry.getMetricsAsJSON()) as unknown as MetricFamily[]).map(joinable)
}

const JOINED = ['sum', 'first', 'max']

/** prom-client leaves some figures out when it joins workers, or takes their mean: of these the worst one counts. */
function joinable(family: MetricFamily): MetricFamily {
  const aggregator = JOINED.includes(family.aggregator) ? family.aggregator : 'max'
  return { name: family.name, help: family.help, type: family.type, values: family.values, aggregator }
}
