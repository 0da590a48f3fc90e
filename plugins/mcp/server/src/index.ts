import { definePlugin, Events, Host, type SlotToken, systemContext } from '@svc/core'
import { McpClients, type Mount, Modes, Mounts, Peers, Prompts, Resources, Routes, Selection, Tools } from '@svc/core/contracts'
import { mcpServerConfig } from './settings.ts'

/** Runs before the http plugin waits for its connections. */
const FIRST_STAGE = -1_000

const off = 'the tool server is off; run `svc serve --mcp`, or set `mcp.server.enabled: true`'
/** A client of the paths of the tool server learns why they do not exist. */
const OFF: readonly [name: string, mount: Mount][] = [
  ['mcp', { path: '/mcp', scope: 'tools', off }],
  ['mcp/tools', { path: '/tools', scope: 'tools', off }],
]

/** Publishes tools over the Model Context Protocol (MCP) and plain HTTP. */
export default definePlugin({
  section: 'mcp.server',
  config: mcpServerConfig,
  requires: { host: Host, events: Events, tools: Tools, modes: Modes, resources: Resources, prompts: Prompts, routes: Routes },
  optional: { peers: Peers, clients: McpClients, selection: Selection },
  async setup(scope, { host, routes, modes, selection, ...services }) {
    const { config, log } = scope
    if (!config.enabled) return OFF.forEach(([name, mount]) => void scope.add(Mounts, name, mount))
    const { createToolServer } = await import('./tool-server.ts')
    const own = systemContext(scope.signal, 'mcp-server')
    const { version } = await host.report(own)
    const { mcp, ...server } = createToolServer({ config, env: process.env, log, own, version, modes, ...services })
    const add = <T>(slot: SlotToken<T>, name: string, item: T) => void scope.add(slot, name, item)
    server.contribute(add)
    scope.tap(Selection.hooks.changed, ({ mode }) => server.setMode(mode))
    if (selection) server.setMode(await selection.mode(own))
    scope.tap(Tools.changed, change => mcp.toolsChanged(change))
    scope.tap(Resources.changed, () => mcp.resourcesChanged())
    scope.tap(Prompts.changed, () => mcp.promptsChanged())
    scope.tap(Host.hooks.closing, () => mcp.drain(), { stage: FIRST_STAGE })
    scope.tap(Host.hooks.ready, () => {
      server.complete(add, host, routes)
      return undefined
    })
    scope.defer(() => mcp.close())
  },
})
