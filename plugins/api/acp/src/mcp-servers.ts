import type { McpServer } from '@agentclientprotocol/sdk'
import { messageOf, redactText } from '@svc/core'
import type { Tool } from '@svc/core/contracts'
import { bridgedName, type ListedTool } from '@svc/mcp-protocol'
import { createMcpClient, fromMcpSchema, type McpClient, type StdioOptions } from '@svc/plugin-mcp-client/client'
import { definedOf, oneLine } from '@svc/plugin-kit'
import { notInSession, serverSilent } from './errors.ts'
import type { Editor, Session } from './session.ts'

/** Maximum MCP servers of a session. */
const MAX_SERVERS = 32
/** Time for a server to start and to list its tools. The first prompt waits for it. */
const CONNECT_MS = 15_000
const CALL_S = 120

/**
 * Connects to the MCP servers that the editor names for a session, and adds their tools. A tool with the name of another tool is
 * left out: the configuration of svc takes precedence. Resolves when all servers have answered or failed, and leaves a notice for
 * the user. Never rejects.
 */
export async function connectServers(editor: Editor, session: Session, servers: readonly McpServer[]): Promise<void> {
  const used = servers.slice(0, MAX_SERVERS)
  const problems = await Promise.all(used.map(server => connect(editor, session, server)))
  if (servers.length > MAX_SERVERS) problems.push(`Only the first ${MAX_SERVERS} servers are used.`)
  const all = problems.filter(problem => problem !== undefined)
  if (all.length === 0) return
  editor.services.log.warn({ session: session.id, problems: all }, 'svc does not use some MCP servers of the editor')
  session.notice = all.join('\n')
}

/** Returns the problem of a server that cannot be used. */
async function connect(editor: Editor, session: Session, server: McpServer): Promise<string | undefined> {
  const shown = oneLine(server.name, 60)
  const options = launchOf(server, session.cwd)
  if (options === undefined) return `${shown}: svc connects only to local servers of the editor. Add it to mcp.clients of svc.`
  const client = createMcpClient(options)
  session.clients.add(client)
  try {
    const { tools } = await client.listTools({ signal: editor.own.signal })
    // the session was closed meanwhile
    if (!session.clients.has(client)) return undefined
    for (const tool of tools) addTool(editor, session, { server: server.name, client, tool })
    return undefined
  } catch (error) {
    return `${shown}: ${redactText(messageOf(error)).slice(0, 500)}`
  }
}

/** The program of a local server. The editor has configured it, so it runs with the rights of svc. */
function launchOf(server: McpServer, cwd: string): StdioOptions | undefined {
  if (!('command' in server)) return undefined
  const env = Object.fromEntries(server.env.map(({ name, value }) => [name, value]))
  const { name, command, args } = server
  // `can`: a tool in the slot cannot pass on questions of the server
  return { name, command, args, env, cwd, can: [], connectMs: CONNECT_MS, retryAttempts: 0, timeout: CALL_S }
}

/** A tool as its server lists it. */
interface ServerTool {
  readonly server: string
  readonly client: McpClient
  readonly tool: ListedTool
}

function addTool(editor: Editor, session: Session, { server, client, tool }: ServerTool): void {
  const { services, serverTools } = editor
  const name = bridgedName(server, tool.name)
  try {
    const shared = serverTools.get(name) ?? {
      sessions: new Set<Session>(),
      remove: services.extend.addTool(name, slotTool(editor, name, tool)),
    }
    serverTools.set(name, shared)
    shared.sessions.add(session)
    session.serverTools.set(name, { client, tool: tool.name })
  } catch (err) {
    services.log.warn({ err, tool: name }, 'failed to add a tool of an MCP server of the editor')
  }
}

/** Calls the server of the session that calls the tool. The user must agree, because svc knows nothing of the server. */
function slotTool(editor: Editor, name: string, listed: ListedTool): Tool {
  const { title, description, parameters, result } = fromMcpSchema(listed)
  return {
    ...definedOf({ title, result }),
    description,
    category: 'mcp',
    effects: ['execute', 'network'],
    asks: true,
    modes: editor.services.modes.names(),
    timeoutMs: CALL_S * 1_000,
    parameters,
    async call(args, ctx) {
      const found = editor.turns.get(ctx.requestId)?.session.serverTools.get(name)
      if (!found) throw notInSession()
      for await (const step of found.client.call(found.tool, args, {}, ctx)) if (step.type === 'result') return step.result
      throw serverSilent(name)
    },
  }
}

/** Ends the servers of a session, and removes the tools that no other session has. */
export async function leaveServers({ serverTools }: Editor, session: Session): Promise<void> {
  for (const name of session.serverTools.keys()) {
    const shared = serverTools.get(name)
    shared?.sessions.delete(session)
    if (shared?.sessions.size !== 0) continue
    shared.remove()
    serverTools.delete(name)
  }
  session.serverTools.clear()
  const clients = [...session.clients]
  session.clients.clear()
  await Promise.all(clients.map(client => client.close()))
}
