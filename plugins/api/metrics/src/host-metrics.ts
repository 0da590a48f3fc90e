import type { CallContext, CallStats, HookStats, Host } from '@svc/core'
import type { MetricFamily } from '@svc/core/contracts'
import { counter } from '@svc/plugin-kit'

/** Returns the metrics of the host: calls, errors and seconds of each plugin on hooks and in slots. */
export async function hostMetrics(host: Host, ctx: CallContext): Promise<MetricFamily[]> {
  const report = await host.report(ctx)
  const family = (name: string, help: string, value: (hookStats: HookStats) => number) =>
    counter(
      name,
      help,
      report.hooks.map(hook => ({ labels: { plugin: hook.plugin, hook: hook.hook }, value: value(hook) }))
    )
  const calls = (name: string, help: string, value: (callStats: CallStats) => number) =>
    counter(
      name,
      help,
      report.calls
        .filter(call => call.calls > 0)
        .map(call => ({ labels: { plugin: call.plugin, slot: call.slot, method: call.method }, value: value(call) }))
    )
  return [
    family('svc_hook_calls_total', 'Calls of a plugin on a hook.', item => item.calls),
    family('svc_hook_errors_total', 'Failed calls of a plugin on a hook.', item => item.errors),
    family('svc_hook_seconds_total', 'Seconds in calls of a plugin on a hook.', item => item.ms / 1000),
    calls('svc_plugin_calls_total', 'Calls of slot entries of a plugin.', item => item.calls),
    calls('svc_plugin_errors_total', 'Failed calls of slot entries of a plugin.', item => item.errors),
    calls('svc_plugin_seconds_total', 'Seconds in calls of slot entries of a plugin, without streams.', item => item.ms / 1000),
  ]
}

// Shared by all hosts of the process: Node's metrics are per process, and prom-client cannot stop collecting them.
let collecting: Promise<() => Promise<MetricFamily[]>> | undefined

/** Starts to collect Node's metrics (memory, event loop, garbage collection), once in a process. Loads prom-client. */
export function collectNodeMetrics(): Promise<() => Promise<MetricFamily[]>> {
  collecting ??= collect()
  return collecting
}

async function collect() {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return async () => withoutEmptyDelays(((await registry.getMetricsAsJSON()) as unknown as MetricFamily[]).map(joinable))
}

const DELAYS = /^nodejs_eventloop_lag_(?:min|max|mean|stddev|p\d+)_seconds$/
const MEAN = 'nodejs_eventloop_lag_mean_seconds'

/** Removes the delays of the event loop if there is no sample since the last read: their mean is NaN, their minimum 2^63 ns. */
function withoutEmptyDelays(families: readonly MetricFamily[]): MetricFamily[] {
  const isEmpty = families.some(({ name, values }) => name === MEAN && values.some(({ value }) => Number.isNaN(value)))
  return families.map(family => (isEmpty && DELAYS.test(family.name) ? { ...family, values: [] } : family))
}

const JOINED = ['sum', 'first', 'max']

/** Sets the aggregator `max` where prom-client would omit a metric of several workers or take the mean. */
function joinable(family: MetricFamily): MetricFamily {
  const aggregator = JOINED.includes(family.aggregator) ? family.aggregator : 'max'
  return { name: family.name, help: family.help, type: family.type, values: family.values, aggregator }
}
