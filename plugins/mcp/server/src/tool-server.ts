import type { CallContext, Events, Host, HostReport, JsonSchema, Log, SlotToken, SlotView } from '@svc/core'
import {
  AuthSchemes,
  type HealthFact,
  HealthFacts,
  type McpClients,
  type Mode,
  Mounts,
  PeerAnswers,
  type Peers,
  type Pipe,
  Pipes,
  type Prompt,
  type Resource,
  type Route,
  Routes,
  type Tool,
} from '@svc/core/contracts'
import { PROTOCOL_VERSIONS } from '@svc/mcp-protocol'
import { CALL_LIMITS, createCalls } from './call.ts'
import { createModeGate, findUnknownNames, toolSets } from './catalogue.ts'
import { createMcp, type Mcp } from './mcp.ts'
import type { Published } from './published.ts'
import { createServerKey } from './server-key.ts'
import type { McpServerConfig } from './settings.ts'
import { createToolRoutes } from './tool-routes.ts'

interface ToolServerOptions {
  readonly config: McpServerConfig
  readonly tools: SlotView<Tool>
  readonly modes: SlotView<Mode>
  readonly resources: SlotView<Resource>
  readonly prompts: SlotView<Prompt>
  readonly peers: Peers | undefined
  readonly clients: McpClients | undefined
  readonly events: Events
  /** The version of the service. */
  readonly version: string
  /** Call context of work that outlives its request. */
  readonly own: CallContext
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
}

/** Adds an item to a slot of the host. */
type Add = <T>(slot: SlotToken<T>, name: string, item: T) => void

export interface ToolServer {
  readonly mcp: Mcp
  /** Publishes the tools that this mode allows, and notifies clients if that is another mode. */
  setMode(mode: string): void
  /** Adds routes, mounts and other items to the slots of the host. */
  contribute(add: Add): void
  /** Runs after all plugins have added their items: checks the configured names and adds `/health` if it is free. Throws MCP_TOOL_UNKNOWN. */
  complete(add: Add, host: Host, routes: SlotView<Route>): void
}

export function createToolServer({ config, env, version, modes, ...options }: ToolServerOptions): ToolServer {
  const { tools, log } = options
  const calls = createCalls(CALL_LIMITS, options.events, log)
  const { max_per_principal: perPrincipal, max: inAll, idle_timeout_ms: idleMs } = config.sessions
  const gate = createModeGate(modes)
  const mcp = createMcp({
    ...options,
    gate,
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
    setMode(mode) {
      if (gate.set(mode)) mcp.modeChanged()
    },
    contribute(add) {
      for (const [name, route] of Object.entries(createToolRoutes(published))) add(Routes, name, route)
      for (const mount of mcp.mounts) add(Mounts, mount.path.slice(1), mount)
      add(Pipes, 'mcp', createPipe(mcp.published))
      add(PeerAnswers, 'mcp-server.session', mcp.peerAnswer)
      add(AuthSchemes, 'mcp_key', createServerKey({ auth: config.auth, env, log }))
      add(HealthFacts, 'mcp', fact)
    },
    complete(add, host, routes) {
      const unknown = findUnknownNames(config, tools.names())
      if (unknown) throw unknown
      if (needsHealth(routes)) add(Routes, 'mcp_health', createHealthRoute(host, fact))
    },
  }
}

/** Serves one client over two streams. */
const createPipe = (published: Published): Pipe => ({
  async serve(input, output, ctx) {
    ctx.signal.throwIfAborted()
    const { serveStdio } = await import('./stdio.ts')
    const connection = await serveStdio(published, { input, output }, ctx)
    const close = () => void connection.close()
    ctx.signal.addEventListener('abort', close, { once: true })
    await connection.ended
    ctx.signal.removeEventListener('abort', close)
  },
})

const STRING: JsonSchema = { type: 'string' }
const health: JsonSchema = {
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['healthy', 'degraded', 'unhealthy'] },
    version: STRING,
    uptime_seconds: { type: 'integer' },
    tools: { type: 'integer' },
    protocol_versions: { type: 'array', items: STRING },
  },
  required: ['status', 'version', 'uptime_seconds', 'tools', 'protocol_versions'],
}

const PATH = '/health'

/** Whether no other plugin serves `/health`. The API serves it with the same facts. */
const needsHealth = (routes: SlotView<Route>): boolean => !routes.entries().some(([, { path }]) => path === PATH)

/** Creates `/health` for a server without the API. */
const createHealthRoute = (host: Host, fact: HealthFact): Route => ({
  method: 'GET',
  path: PATH,
  summary: 'Get the status of the MCP server; 503 while it does not serve',
  uncounted: true,
  responses: {
    '200': { description: 'The server is running.', schema: health },
    '503': { description: 'The server is starting or closing.', schema: health },
  },
  async handle(_request, ctx: CallContext) {
    const [report, more] = await Promise.all([host.report(ctx), fact.facts(ctx)])
    const status = statusOf(report)
    const { version, startedAt } = report
    const uptime = Math.floor((Date.now() - startedAt) / 1000)
    return { status: status === 'unhealthy' ? 503 : 200, body: { status, version, uptime_seconds: uptime, ...more } }
  },
})

/** A worker with a successor is healthy: only this worker ends, and the server continues. */
function statusOf({ state, successor, plugins }: HostReport) {
  if (state !== 'running' && state !== 'leaving' && !successor) return 'unhealthy'
  return plugins.some(plugin => plugin.state === 'failed') ? 'degraded' : 'healthy'
}
