import type { SvcError } from '@svc/core'
import type { Tool, ToolResult } from '@svc/core/contracts'
import { bridgedName, LIMITS, type ToolSchema } from '@svc/mcp-protocol'
import { bytesOf, definedOf } from '@svc/plugin-kit'
import {
  type AbortOptions,
  type Arguments,
  type CallAnswer,
  type HttpOptions,
  type McpClient,
  type StdioOptions,
} from './connection/client-types.ts'
import { createMcpClient } from './connection/mcp-client.ts'
import { badOption, noResult, notForRemote, notRegistered, registeredTwice } from './errors.ts'

export type * from './connection/client-types.ts'
export { createMcpClient } from './connection/mcp-client.ts'
export { type LoginOptions, loginMcp } from './connection/login.ts'
export { fromMcpSchema, LIMITS, type ToolList, toMcpSchema, type ToolSchema } from '@svc/mcp-protocol'
export { type Loopback, openLoopback } from '@svc/mcp-protocol/oauth'

/** A server of a registry, and the names of the tools that its client lists and calls (absent: all). */
export interface RegistryEntry {
  readonly name: string
  readonly url?: string
  readonly command?: readonly string[]
  readonly tools?: readonly string[]
}

/** The address of a server, or its options. */
export type ServerLocation = string | Omit<HttpOptions, 'name' | 'tools'> | Omit<StdioOptions, 'name' | 'tools'>

/** Servers by name. */
export interface McpRegistry extends AsyncDisposable {
  /** With `tools`, its client lists and calls only these tools. Throws NAME_TAKEN and CONFIG_INVALID. */
  register(name: string, server: ServerLocation, tools?: readonly string[]): void
  /** Returns its client, always the same one; it connects on the first call. Throws MCP_SERVER_UNKNOWN. */
  getClient(name: string): McpClient
  listAll(): readonly RegistryEntry[]
  /** Closes its client. Throws MCP_SERVER_UNKNOWN. */
  remove(name: string): Promise<void>
}

/** Makes a registry: `registry.register('weather', 'https://weather.example/mcp')`, then `registry.getClient('weather').listTools()`. */
export function createMcpRegistry(): McpRegistry {
  const all = new Map<string, { readonly entry: RegistryEntry; readonly client: McpClient }>()
  const named = (name: string) => {
    const registered = all.get(name)
    if (registered === undefined) throw notRegistered(name, [...all.keys()])
    return registered
  }
  return {
    register(name, server, tools) {
      if (all.has(name)) throw registeredTwice(name)
      const options = typeof server === 'string' ? { url: server } : server
      const location = options.url === undefined ? { command: [options.command, ...(options.args ?? [])] } : { url: options.url }
      const limited = { name, ...(tools && { tools: [...tools] }) }
      all.set(name, { entry: { ...location, ...limited }, client: createMcpClient({ ...options, ...limited }) })
    },
    getClient: name => named(name).client,
    listAll: () => [...all.values()].map(({ entry }) => entry),
    async remove(name) {
      const { client } = named(name)
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

/** Limits of a call to a remote server, in the names and units of the document. */
export interface McpSandboxConfig {
  /** Seconds; default 30. */
  readonly timeout?: number
  /** Maximum size of an answer: `512M`; never more than 10 MiB; default `512M`. */
  readonly memoryLimit?: string
  /** False: no address but the server's own. Default false. */
  readonly networkAccess?: boolean
  /** Must be true: a remote server has no files here. */
  readonly filesystemReadonly?: boolean
  readonly allowedPaths?: readonly string[]
}

export interface McpSandbox {
  /** Calls a tool of an untrusted server on a connection of its own. */
  execute(toolName: string, args: Arguments, serverUrl: string, ctx?: AbortOptions): Promise<CallAnswer>
}

/** Makes a sandbox: `await createMcpSandbox({ timeout: 5 }).execute('forecast', { city: 'Bonn' }, 'https://weather.example/mcp')`. Throws CONFIG_INVALID. */
export function createMcpSandbox(config: McpSandboxConfig = {}): McpSandbox {
  const { timeout = 30, memoryLimit = '512M', networkAccess = false, filesystemReadonly = true, allowedPaths = [] } = config
  if (!filesystemReadonly) throw notForRemote('filesystem_readonly')
  if (allowedPaths.length > 0) throw notForRemote('allowed_paths')
  const bytes = bytesOf(memoryLimit)
  if (!bytes) throw badOption('memory_limit', memoryLimit)
  const resultBytes = Math.min(LIMITS.resultBytes, bytes)
  return {
    async execute(toolName, args, serverUrl, ctx = {}) {
      await using client = createMcpClient({
        url: serverUrl,
        networkAccess,
        timeout,
        maxTimeout: timeout,
        retryAttempts: 0,
        limits: { resultBytes },
      })
      return await client.callTool(toolName, args, ctx)
    },
  }
}

/** A tool of a server as a tool of svc. Dispose it to close the connection. */
export interface BridgedTool extends AsyncDisposable {
  /** `<server>__<tool>` */
  readonly name: string
  readonly tool: Tool
}

export interface BridgeOptions extends Omit<HttpOptions, 'url'> {
  readonly serverUrl: string
  readonly toolName: string
}

/**
 * Makes a tool of svc from one tool of a server: `const { name, tool } = await bridgeTool({ serverUrl: 'https://weather.example/mcp', toolName: 'forecast' })`, then
 * `scope.add(Tools, name, tool)`. Throws MCP_CALL_FAILED.
 */
export async function bridgeTool({ serverUrl, toolName, ...options }: BridgeOptions, ctx?: AbortOptions): Promise<BridgedTool> {
  const client = createMcpClient({ ...options, url: serverUrl })
  try {
    const schema = await client.getToolSchema(toolName, ctx)
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
    ...definedOf({ title, result }),
    description,
    category: 'mcp',
    effects: ['execute', 'network'],
    parameters,
    async call(args, ctx): Promise<ToolResult> {
      for await (const step of client.call(name, args, {}, ctx)) if (step.type === 'result') return step.result
      throw noResult(client.name)
    },
    run: (args, dialog, ctx) => client.call(name, args, { dialog, owner: ctx.principal.id }, ctx),
  }
}
