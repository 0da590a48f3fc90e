import type { SvcError } from '@svc/core'
import type { Tool, ToolResult } from '@svc/core/contracts'
import { bridgedName, type ToolSchema } from '@svc/mcp'
import type { Arguments, CallAnswer, McpClient, Waiting } from './connection/client-types.ts'
import { noLastWord } from './connection/failures.ts'
import { createMcpClient } from './connection/mcp-client.ts'
import { bytesOf, type HttpOptions, LIMITS, type StdioOptions } from './connection/options.ts'
import { notForRemote, notRegistered, registeredTwice } from './errors.ts'

export type {
  Arguments,
  CallAnswer,
  McpChange,
  McpClient,
  McpStatus,
  StepOptions,
  ToolList,
  Waiting,
} from './connection/client-types.ts'
export { createMcpClient } from './connection/mcp-client.ts'
export { type LoginOptions, type Loopback, loginMcp, openLoopback } from './connection/oauth/login.ts'
export {
  type HttpOptions,
  type KnownEra,
  type Launch,
  LIMITS,
  type McpClientOptions,
  type McpLimits,
  type OAuthOptions,
  type Person,
  type ReconnectPolicy,
  type StdioOptions,
  type TokenStorage,
} from './connection/options.ts'
export type { Backoff, Clock } from './connection/timing.ts'
export { fromMcpSchema, toMcpSchema, type ToolSchema } from '@svc/mcp'

/** A server in a registry: where it is, and which of its tools are meant (none named: all). */
export interface RegistryEntry {
  readonly name: string
  readonly url?: string
  readonly command?: readonly string[]
  readonly tools: readonly string[]
}

/** Where a server is: its address, or more than that. */
export type Registered = string | Omit<HttpOptions, 'name'> | Omit<StdioOptions, 'name'>

/** Servers by name. */
export interface McpRegistry extends AsyncDisposable {
  /** Throws NAME_TAKEN and CONFIG_INVALID. */
  register(name: string, server: Registered, tools?: readonly string[]): void
  /** Its client, always the same; it connects when it is first used. Throws MCP_SERVER_UNKNOWN. */
  getClient(name: string): McpClient
  listAll(): readonly RegistryEntry[]
  /** Ends its client. Throws MCP_SERVER_UNKNOWN. */
  remove(name: string): Promise<void>
}

/** Makes a registry: `registry.register('weather', 'https://weather.example/mcp')`, then `registry.getClient('weather').listTools()`. */
export function createMcpRegistry(): McpRegistry {
  const all = new Map<string, { readonly entry: RegistryEntry; readonly client: McpClient }>()
  const find = (name: string) => {
    const found = all.get(name)
    if (found === undefined) throw notRegistered(name, [...all.keys()])
    return found
  }
  return {
    register(name, server, tools = []) {
      if (all.has(name)) throw registeredTwice(name)
      const options = typeof server === 'string' ? { url: server } : server
      const place = options.url === undefined ? { command: [options.command, ...(options.args ?? [])] } : { url: options.url }
      all.set(name, { entry: { name, ...place, tools: [...tools] }, client: createMcpClient({ ...options, name }) })
    },
    getClient: name => find(name).client,
    listAll: () => [...all.values()].map(({ entry }) => entry),
    async remove(name) {
      const { client } = find(name)
      all.delete(name)
      await client.close()
    },
    async [Symbol.asyncDispose]() {
      const clients = [...all.values()].map(({ client }) => client)
      all.clear()
      await Promise.all(clients.map(client => client.close()))
    },
  }
}

/** Limits of a call to a server somewhere else, in the document's words and units. */
export interface McpSandboxConfig {
  /** Seconds; default 30. */
  readonly timeout?: number
  /** What an answer may take: `512M`; at most 10 MiB count; default `512M`. */
  readonly memoryLimit?: string
  /** False: no address but the server's own. Default false. */
  readonly networkAccess?: boolean
  /** A server somewhere else has no files here: only `true` makes sense. */
  readonly filesystemReadonly?: boolean
  readonly allowedPaths?: readonly string[]
}

export interface McpSandbox {
  /** Calls a tool of a server nobody trusts, on a connection of its own. */
  execute(toolName: string, args: Arguments, serverUrl: string, use?: Waiting): Promise<CallAnswer>
}

/** Makes a sandbox: `await createMcpSandbox({ timeout: 5 }).execute('forecast', { city: 'Bonn' }, 'https://weather.example/mcp')`. Throws CONFIG_INVALID. */
export function createMcpSandbox(config: McpSandboxConfig = {}): McpSandbox {
  const { timeout = 30, memoryLimit = '512M', networkAccess = false, filesystemReadonly = true, allowedPaths = [] } = config
  if (!filesystemReadonly) throw notForRemote('filesystem_readonly')
  if (allowedPaths.length > 0) throw notForRemote('allowed_paths')
  const resultBytes = Math.min(LIMITS.resultBytes, bytesOf(memoryLimit))
  return {
    async execute(toolName, args, serverUrl, use = {}) {
      await using client = createMcpClient({
        url: serverUrl,
        networkAccess,
        timeoutMs: timeout * 1_000,
        maxTotalMs: timeout * 1_000,
        reconnect: { maxAttempts: 0, backoff: 'constant' },
        limits: { resultBytes },
      })
      return await client.callTool(toolName, args, use)
    },
  }
}

/** A tool of a server as one of this service; its end closes the connection. */
export interface BridgedTool extends AsyncDisposable {
  /** The name it goes by here: `<server>__<tool>`. */
  readonly name: string
  readonly tool: Tool
}

export interface BridgeOptions extends Omit<HttpOptions, 'url'> {
  readonly serverUrl: string
  readonly toolName: string
}

/**
 * One tool of a server, to be added to an agent's: `const { name, tool } = await bridgeTool({ serverUrl: 'https://weather.example/mcp', toolName: 'forecast' })`, then
 * `scope.add(Tools, name, tool)`. Throws MCP_CALL_FAILED.
 */
export async function bridgeTool(
  { serverUrl, toolName, ...options }: BridgeOptions,
  use?: { readonly signal?: AbortSignal }
): Promise<BridgedTool> {
  const client = createMcpClient({ ...options, url: serverUrl })
  try {
    const schema = await client.getToolSchema(toolName, use)
    return {
      name: bridgedName(options.name ?? new URL(serverUrl).hostname, toolName),
      tool: toolOf(client, schema),
      [Symbol.asyncDispose]: () => client.close(),
    }
  } catch (error) {
    await client.close()
    throw error as SvcError
  }
}

function toolOf(client: McpClient, { name, title, description, parameters, result }: ToolSchema): Tool {
  return {
    ...(title !== undefined && { title }),
    description,
    category: 'mcp',
    effects: ['execute', 'network'],
    parameters,
    ...(result !== undefined && { result }),
    async call(args, use): Promise<ToolResult> {
      for await (const step of client.call(name, args, {}, use)) if (step.type === 'result') return step.result
      throw noLastWord(client.name)
    },
    run: (args, dialog, use) => client.call(name, args, { dialog, owner: use.principal.id }, use),
  }
}
