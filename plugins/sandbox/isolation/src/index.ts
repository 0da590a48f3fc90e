import { definePlugin, Host } from '@svc/core'
import { Checks, Isolation, MetricSources, Peers, ProcessSandbox } from '@svc/core/contracts'
import { createFirstUse } from './first-use.ts'
import { pluginsCheck, statesOf } from './health.ts'
import { familiesOf } from './metrics.ts'
import { createQuarantine } from './quarantine.ts'
import { isolationConfig } from './settings.ts'

/** The stage at which this worker has joined its peers, and does not serve yet. */
const JOINED = 950

export default definePlugin({
  section: 'isolation',
  config: isolationConfig,
  requires: { host: Host },
  optional: { sandbox: ProcessSandbox, peers: Peers },
  provides: Isolation,
  setup(scope, { host, sandbox, peers }) {
    const { config, log } = scope
    const quarantine = createQuarantine(peers, log)
    // a server without isolated plugins needs no checks, metrics or taps
    const onFirst = () => {
      scope.add(Checks, 'plugins', pluginsCheck(host, peers))
      scope.add(MetricSources, 'isolation', { read: async ctx => familiesOf((await host.report(ctx)).plugins) })
      scope.tap(Peers.hooks.message, ({ topic, message }, ctx) => quarantine.onMessage(topic, message, ctx))
      scope.tap(Peers.hooks.metrics, async (metrics, ctx) => ({
        ...metrics,
        isolation: { quarantined: quarantine.names(), states: await statesOf(host, ctx) },
      }))
      scope.tap(Host.hooks.ready, (_, ctx) => quarantine.joined(ctx), { stage: JOINED })
    }
    return scope.use(createFirstUse({ config, log, sandbox, quarantine, onFirst }))
  },
})

export type { IsolationConfig } from './settings.ts'
