import type { CallContext } from '@svc/core'
import type { McpClients } from '@svc/core/contracts'
import { bridgedName } from '@svc/mcp-protocol'
import type { ToolSet } from './tool-sets.ts'

/** The server of a tool that would be published by this name, but has changed and waits for a person's approval; undefined of any other name. */
export type Withheld = (name: string, ctx: CallContext) => Promise<string | undefined>

/** Asks no server: what is known of them is enough. */
export function createWithheld(clients: Pick<McpClients, 'list'> | undefined, { isPublished }: ToolSet): Withheld {
  return async (name, ctx) => {
    if (clients === undefined || !isPublished(name)) return undefined
    const servers = (await clients.list(ctx)).filter(({ state }) => state !== 'disabled')
    return servers.find(({ name: server, changed = [] }) => changed.some(tool => bridgedName(server, tool) === name))?.name
  }
}
