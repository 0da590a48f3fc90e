import { type CallContext, type Coalescer, createCoalescer, type Log } from '@svc/core'
import type { McpClients, McpServerInfo, McpTool, Tool } from '@svc/core/contracts'
import { bridgedName } from '@svc/mcp-protocol'
import { createBridgedTool } from './bridged-tool.ts'
import { nameClash } from './errors.ts'
import type { CallReporter } from './call-reporter.ts'

interface ToolBridgeOptions {
  readonly clients: McpClients
  readonly reporter: CallReporter
  /** Adds a tool to the service and returns a function that removes it. Throws if the name is taken. */
  readonly add: (name: string, tool: Tool) => () => void
  readonly log: Log
  /** Call context of work that no request started. */
  readonly ctx: CallContext
}

/** Publishes the tools of the connected servers as tools of this service. */
export interface Bridge {
  /** Updates the tools of all servers in parallel, so that a slow server does not delay the others. */
  syncAll(): Promise<void>
  /** Updates the tools of a server that has changed. A change during an update starts another update afterwards. */
  sync(server: string): Promise<void>
}

/** A tool in the slot. `fingerprint` identifies the description that it was made from. */
interface AddedTool {
  readonly fingerprint: string
  readonly remove: () => void
}

export function createBridge(options: ToolBridgeOptions): Bridge {
  const added = new Map<string, Map<string, AddedTool>>()
  const syncs = new Map<string, Coalescer<void>>()
  const sync = (server: string): Promise<void> => {
    const of = syncs.get(server) ?? createCoalescer(() => update(server))
    syncs.set(server, of)
    return of.request()
  }
  const update = async (server: string) => {
    if (!options.ctx.signal.aborted) await syncOne(options, server, added).catch(error => logFailure(options, server, error))
  }
  return {
    sync,
    async syncAll() {
      const servers = await options.clients.list(options.ctx)
      await Promise.all(servers.map(({ name }) => sync(name)))
    },
  }
}

/** The tools of the server stay as they are. The next change reads them again. */
function logFailure({ log, ctx }: ToolBridgeOptions, server: string, error: unknown) {
  if (!ctx.signal.aborted) log.warn({ err: error, server }, 'failed to read the tools of an MCP server')
}

async function syncOne(options: ToolBridgeOptions, server: string, all: Map<string, Map<string, AddedTool>>): Promise<void> {
  const { clients, ctx } = options
  const info = (await clients.list(ctx)).find(({ name }) => name === server)
  const offered = info && info.tools.length > 0 ? await clients.tools(server, ctx) : []
  if (ctx.signal.aborted) return
  const tools = offered.filter(({ name, standing }) => standing === 'good' && info?.tools.includes(name))
  const added = all.get(server) ?? new Map<string, AddedTool>()
  all.set(server, added)
  const wanted = new Map(info ? tools.map(tool => [bridgedName(server, tool.name), withFingerprint(info, tool)]) : [])
  for (const [name, { fingerprint, remove }] of added) {
    if (wanted.get(name)?.fingerprint === fingerprint) continue
    remove()
    added.delete(name)
  }
  for (const [name, { tool, fingerprint }] of wanted)
    if (info && !added.has(name)) addOne(options, info, tool, { name, fingerprint }, added)
}

/** The fingerprint contains everything that callers see. */
const withFingerprint = ({ effects, callLimitMs }: McpServerInfo, tool: McpTool) => ({
  tool,
  fingerprint: JSON.stringify([tool, effects, callLimitMs]),
})

function addOne(
  options: ToolBridgeOptions,
  server: McpServerInfo,
  tool: McpTool,
  as: { name: string; fingerprint: string },
  added: Map<string, AddedTool>
) {
  const { clients, reporter, add, log } = options
  try {
    const remove = add(as.name, createBridgedTool({ name: as.name, server, tool, clients, reporter }))
    added.set(as.name, { fingerprint: as.fingerprint, remove })
  } catch (error) {
    log.error({ err: nameClash(as.name, server.name, error), server: server.name }, 'failed to add a tool of an MCP server')
  }
}
