import { definePlugin, Host } from '@svc/core'
import { Checks, Isolation, MetricSources, ProcessSandbox } from '@svc/core/contracts'
import { createFirstUse } from './first-use.ts'
import { pluginsCheck } from './health.ts'
import { familiesOf } from './metrics.ts'
import { isolationConfig } from './settings.ts'

export default definePlugin({
  section: 'isolation',
  config: isolationConfig,
  requires: { host: Host },
  optional: { sandbox: ProcessSandbox },
  provides: Isolation,
  setup(scope, { host, sandbox }) {
    const { config, log } = scope
    // Where nothing is isolated there is nothing to be told.
    const onFirst = () => {
      scope.add(Checks, 'plugins', pluginsCheck(host))
      scope.add(MetricSources, 'isolation', { read: async use => familiesOf((await host.report(use)).plugins) })
    }
    return scope.use(createFirstUse({ config, log, sandbox, onFirst }))
  },
})

export type { IsolationConfig } from './settings.ts'
