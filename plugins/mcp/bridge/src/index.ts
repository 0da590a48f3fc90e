import { definePlugin, Events, Host, systemContext } from '@svc/core'
import { McpClients, MetricSources, Tools } from '@svc/core/contracts'
import { createBridge } from './bridge.ts'
import { createCallMetrics } from './call-metrics.ts'
import { createLedger } from './ledger.ts'

/** The tools of connected servers, as `<server>__<tool>`, for models and all other callers. */
export default definePlugin({
  requires: { clients: McpClients, events: Events },
  setup(scope, { clients, events }) {
    const metrics = createCallMetrics()
    const bridge = createBridge({
      clients,
      ledger: createLedger(events, metrics, scope.log),
      add: (name, tool) => scope.add(Tools, name, tool),
      log: scope.log,
      ctx: systemContext(scope.signal, 'mcp-bridge'),
    })
    const failed = (err: unknown) => scope.log.error({ err }, 'the connected servers could not be listed')
    scope.add(MetricSources, 'mcp-bridge', { read: async () => metrics.read() })
    scope.tap(McpClients.hooks.changed, ({ server }) => void bridge.sync(server))
    // nobody's start waits for a server of somebody else's
    scope.tap(Host.hooks.ready, () => void bridge.syncAll().catch(failed))
  },
})
