import type { Events, Host, Log, SlotToken, SlotView, Use } from '@svc/core'
import { AuthSchemes, HealthFacts, Mounts, PeerAnswers, Pipes, Routes } from '@svc/core/contracts'
import type { HealthFact, McpClients, Peers, Prompt, Resource, Route, Tool } from '@svc/core/contracts'
import { PROTOCOL_VERSIONS } from '@svc/mcp-protocol'
import { CALL_LIMITS, createCalls } from './call.ts'
import { createMcp, type Mcp } from './mcp.ts'
import { createPipe } from './pipe.ts'
import { createHealthRoute, needsHealth } from './routes-health.ts'
import { createToolRoutes } from './routes-tools.ts'
import { createServerKey } from './server-key.ts'
import type { McpServerConfig } from './settings.ts'
import { lostNames, toolSets } from './tool-sets.ts'

/** What the tool server stands on. */
export interface ToolServerParts {
  readonly config: McpServerConfig
  readonly tools: SlotView<Tool>
  readonly resources: SlotView<Resource>
  readonly prompts: SlotView<Prompt>
  readonly peers: Peers | undefined
  readonly clients: McpClients | undefined
  readonly events: Events
  /** The version of the service. */
  readonly version: string
  /** The circumstances of work that no request ends. */
  readonly own: Use
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
}

/** Adds an item to a slot of the host. */
type Add = <T>(slot: SlotToken<T>, name: string, item: T) => void

/** The tool server. */
export interface ToolServer {
  readonly mcp: Mcp
  /** Tells all that it adds to the slots of the host. */
  contribute(add: Add): void
  /** The same once all plugins have added theirs: whoever else tells how this server is does it better. Throws MCP_TOOL_UNKNOWN. */
  complete(add: Add, host: Host, routes: SlotView<Route>): void
}

export function createToolServer({ config, env, version, ...parts }: ToolServerParts): ToolServer {
  const { tools, log } = parts
  const calls = createCalls(CALL_LIMITS, parts.events, log)
  const { max_per_principal: perPrincipal, max: inAll, idle_timeout_ms: idleMs } = config.sessions
  const mcp = createMcp({
    ...parts,
    calls,
    limits: { perPrincipal, inAll, idleMs },
    sets: toolSets(config),
    info: { name: 'svc', version },
  })
  const { catalogue, published } = mcp
  const fact: HealthFact = {
    facts: async () => ({ tools: catalogue().tools.length, protocol_versions: [...PROTOCOL_VERSIONS] }),
  }
  return {
    mcp,
    contribute(add) {
      for (const [name, route] of Object.entries(createToolRoutes(published))) add(Routes, name, route)
      for (const mount of mcp.mounts) add(Mounts, mount.path.slice(1), mount)
      add(Pipes, 'mcp', createPipe(mcp.published))
      add(PeerAnswers, 'mcp-server.session', mcp.peerAnswer)
      add(AuthSchemes, 'mcp_key', createServerKey({ auth: config.auth, env, log }))
      add(HealthFacts, 'mcp', fact)
    },
    complete(add, host, routes) {
      const lost = lostNames(config, tools.names())
      if (lost) throw lost
      if (needsHealth(routes)) add(Routes, 'mcp_health', createHealthRoute(host, fact))
    },
  }
}
