import { definePlugin, Events, Host, systemContext } from '@svc/core'
import { McpClients, MetricSources, Tools } from '@svc/core/contracts'
import { createBridge } from './bridge.ts'
import { createCallMetrics, createCallReporter } from './call-reporter.ts'

/** Publishes the tools of connected servers as `<server>__<tool>`. */
export default definePlugin({
  requires: { clients: McpClients, events: Events },
  setup(scope, { clients, events }) {
    const metrics = createCallMetrics()
    const bridge = createBridge({
      clients,
      reporter: createCallReporter(events, metrics, scope.log),
      add: (name, tool) => scope.add(Tools, name, tool),
      log: scope.log,
      ctx: systemContext(scope.signal, 'mcp-bridge'),
    })
    const failed = (err: unknown) => scope.log.error({ err }, 'failed to list the connected MCP servers')
    scope.add(MetricSources, 'mcp-bridge', { read: async () => metrics.read() })
    scope.tap(McpClients.hooks.changed, ({ server }) => void bridge.sync(server))
    // the start of svc must not wait for other servers
    scope.tap(Host.hooks.ready, () => void bridge.syncAll().catch(failed))
  },
})
