import type { Use } from '@svc/core'
import type { CommandContext, Store } from '@svc/core/contracts'
import type { LoginOptions, McpClient, ToolList } from '@svc/mcp-client'
import { clientOptions } from '../client-options.ts'
import { loginStorage, personStorage } from '../logins.ts'
import type { Server } from '../servers.ts'
import { sandboxOf } from './ground.ts'

/** A connection of the command's own, whatever runs. Throws MCP_CALL_FAILED where what the entry names is not there. */
export async function openClient(call: CommandContext, store: Store, server: Server, use: Use): Promise<McpClient> {
  const sandbox = server.entry.sandbox && server.entry.url === undefined ? await sandboxOf(call) : undefined
  const storage = loginStorage(store, server, use)
  const options = clientOptions(server, { env: process.env, sandbox, storage, lasting: use })
  const { createMcpClient } = await import('@svc/mcp-client')
  const client = createMcpClient(options)
  // a person waits: what fails is told at once
  client.setReconnectPolicy(0, 'constant')
  return client
}

/** Its tools, read just now. Throws MCP_CALL_FAILED. */
export async function lookAt(call: CommandContext, store: Store, server: Server, use: Use): Promise<ToolList> {
  await using client = await openClient(call, store, server, use)
  return await client.listTools({ signal: use.signal })
}

/** Lets a person log in to a remote server; what that brings is kept for all. Throws MCP_CALL_FAILED. */
export async function logIn(store: Store, server: Server, how: LoginOptions, use: Use): Promise<void> {
  const storage = personStorage(store, server, use)
  const options = clientOptions(server, { env: process.env, sandbox: undefined, storage, lasting: use })
  const { loginMcp } = await import('@svc/mcp-client')
  if (options.url !== undefined) await loginMcp(options, how, { signal: use.signal })
  await storage.done()
}
