import { createMcpClient } from './client.ts'
import type { McpClient } from './client-types.ts'
import { nameTaken, nameUnknown } from './errors.ts'
import type { HttpOptions, StdioOptions } from './options.ts'

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
    if (found === undefined) throw nameUnknown(name, [...all.keys()])
    return found
  }
  return {
    register(name, server, tools = []) {
      if (all.has(name)) throw nameTaken(name)
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
