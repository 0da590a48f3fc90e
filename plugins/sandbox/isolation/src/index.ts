import { definePlugin, Host } from '@svc/core'
import { Checks, Isolation, MetricSources, Peers, ProcessSandbox } from '@svc/core/contracts'
import { createFirstUse } from './first-use.ts'
import { pluginsCheck, standingsOf } from './health.ts'
import { familiesOf } from './metrics.ts'
import { createQuarantine } from './quarantine.ts'
import { isolationConfig } from './settings.ts'

/** This worker is one of its peers, and does not serve yet. */
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
    // Where nothing is isolated there is nothing to be told.
    const onFirst = () => {
      scope.add(Checks, 'plugins', pluginsCheck(host, peers))
      scope.add(MetricSources, 'isolation', { read: async use => familiesOf((await host.report(use)).plugins) })
      scope.tap(Peers.hooks.told, ({ topic, message }, use) => quarantine.told(topic, message, use))
      scope.tap(Peers.hooks.figures, async (figures, use) => ({
        ...figures,
        isolation: { quarantined: quarantine.names(), standings: await standingsOf(host, use) },
      }))
      scope.tap(Host.hooks.ready, (_, use) => quarantine.joined(use), { stage: JOINED })
    }
    return scope.use(createFirstUse({ config, log, sandbox, quarantine, onFirst }))
  },
})

export type { IsolationConfig } from './settings.ts'
