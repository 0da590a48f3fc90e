import { definePlugin, Events, Host, systemContext } from '@svc/core'
import {
  Checks,
  Http,
  McpClients,
  MetricSources,
  PeerAnswers,
  Peers,
  ProcessSandbox,
  ProtectedPaths,
  Store,
} from '@svc/core/contracts'
import { homeFile, programFiles, readServers } from './registry/configured-servers.ts'
import { noServers } from './registry/no-servers.ts'
import { MCP_CONFIG } from './registry/settings.ts'

/** Stages: after this worker has joined its peers and before it serves; before the server drains; after the last call. */
const [JOINED, FIRST, LAST] = [950, -100, 500]

export default definePlugin({
  section: 'mcp',
  config: MCP_CONFIG,
  check: async ({ clients }) => (await readServers(clients, homeFile())).problems,
  requires: { store: Store, host: Host, events: Events },
  optional: { peers: Peers, http: Http, sandbox: ProcessSandbox },
  provides: McpClients,
  async setup(scope, { host, http, ...given }) {
    const { log, hooks, span, config } = scope
    const lasting = systemContext(scope.signal, 'mcp-client')
    const { servers } = await readServers(config.clients, homeFile())
    if (servers.length === 0) return noServers({ config, store: given.store, lasting })
    // most services have no server: they load nothing of this
    const { createMcpService, TOPIC } = await import('./service.ts')
    const isEager = given.peers !== undefined || http !== undefined
    const mcp = await createMcpService({
      ...given,
      config,
      servers,
      host: await host.report(lasting),
      isEager,
      recheckMs: config.recheck_s * 1000,
      env: process.env,
      log,
      span,
      lasting,
      changed: server => void hooks.changed({ server }, lasting),
    })
    scope.defer(() => mcp.close())
    scope.add(ProtectedPaths, 'mcp-servers', { paths: programFiles(servers), owner: 'the MCP servers of svc' })
    scope.add(PeerAnswers, TOPIC, mcp.answer)
    scope.add(Checks, 'mcp', mcp.health)
    scope.add(MetricSources, 'mcp-client', { read: async () => mcp.metrics() })
    scope.tap(Host.hooks.ready, (_, ctx) => void mcp.begin(ctx), { stage: JOINED })
    scope.tap(Peers.hooks.workerExit, ({ holder }) => mcp.workerExited(holder))
    scope.tap(Host.hooks.closing, how => (how.successor ? mcp.leave() : undefined), { stage: FIRST })
    scope.tap(Host.hooks.closing, how => mcp.drain(how.limitMs), { stage: LAST, limitMs: Number.POSITIVE_INFINITY })
    return mcp.clients
  },
})
