import type { Log, CallContext } from '@svc/core'
import type { McpClients, McpServerInfo, McpTool, Tool } from '@svc/core/contracts'
import { bridgedName } from '@svc/mcp-protocol'
import { createBridgedTool } from './bridged-tool.ts'
import { nameClash } from './errors.ts'
import type { Ledger } from './ledger.ts'

export interface BridgeParts {
  readonly clients: McpClients
  readonly ledger: Ledger
  /** Adds a tool to the service; answers its removal. Throws where the name is taken. */
  readonly add: (name: string, tool: Tool) => () => void
  readonly log: Log
  /** Circumstances of work that no request asked for. */
  readonly ctx: CallContext
}

/** Keeps the tools of this service like those of the connected servers. */
export interface Bridge {
  /** Every server, each for itself: one that is slow or down holds up nobody. Answers when all have been looked at. */
  syncAll(): Promise<void>
  /** One server, after it has changed. What comes while it is being looked at is looked at afterwards. */
  sync(server: string): Promise<void>
}

/** A tool in the slot, and the words it was made from. */
interface Held {
  readonly print: string
  readonly remove: () => void
}

export function createBridge(parts: BridgeParts): Bridge {
  const held = new Map<string, Map<string, Held>>()
  const running = new Map<string, { again: boolean; readonly done: Promise<void> }>()

  const look = async (server: string, state: { again: boolean }) => {
    do {
      state.again = false
      await syncOne(parts, server, held).catch(error => told(parts, server, error))
    } while (state.again && !parts.ctx.signal.aborted)
    running.delete(server)
  }
  const sync = (server: string): Promise<void> => {
    const under = running.get(server)
    if (under) under.again = true
    if (under) return under.done
    const state = { again: false }
    const done = look(server, state)
    running.set(server, Object.assign(state, { done }))
    return done
  }
  return {
    sync,
    async syncAll() {
      const servers = await parts.clients.list(parts.ctx)
      await Promise.all(servers.map(({ name }) => sync(name)))
    },
  }
}

/** What cannot be read now stays as it is: the next change looks again. */
function told({ log, ctx }: BridgeParts, server: string, error: unknown) {
  if (!ctx.signal.aborted) log.warn({ err: error, server }, 'the tools of a server could not be read')
}

async function syncOne(parts: BridgeParts, server: string, all: Map<string, Map<string, Held>>): Promise<void> {
  const { clients, ctx } = parts
  const info = (await clients.list(ctx)).find(({ name }) => name === server)
  const offered = info && info.tools.length > 0 ? await clients.tools(server, ctx) : []
  if (ctx.signal.aborted) return
  const tools = offered.filter(({ name, standing }) => standing === 'good' && info?.tools.includes(name))
  const there = all.get(server) ?? new Map<string, Held>()
  all.set(server, there)
  const wanted = new Map(info ? tools.map(tool => [bridgedName(server, tool.name), printed(info, tool)]) : [])
  for (const [name, { print, remove }] of there) {
    if (wanted.get(name)?.print === print) continue
    remove()
    there.delete(name)
  }
  for (const [name, { tool, print }] of wanted) if (info && !there.has(name)) addOne(parts, info, tool, { name, print }, there)
}

/** Everything of it that callers see. */
const printed = ({ effects, callLimitMs }: McpServerInfo, tool: McpTool) => ({
  tool,
  print: JSON.stringify([tool, effects, callLimitMs]),
})

function addOne(
  parts: BridgeParts,
  server: McpServerInfo,
  tool: McpTool,
  as: { name: string; print: string },
  there: Map<string, Held>
) {
  const { clients, ledger, add, log } = parts
  try {
    const remove = add(as.name, createBridgedTool({ name: as.name, server, tool, clients, ledger }))
    there.set(as.name, { print: as.print, remove })
  } catch (error) {
    log.error({ err: nameClash(as.name, server.name, error), server: server.name }, 'a tool of a server stays out of use')
  }
}
