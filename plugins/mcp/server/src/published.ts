import type { CallContext, Log, SlotView } from '@svc/core'
import type { McpClients, Prompt, Resource } from '@svc/core/contracts'
import { bridgedName } from '@svc/mcp-protocol'
import type { Calls } from './call.ts'
import type { Catalogue, ToolSet } from './catalogue.ts'
import type { Changes } from './changes.ts'

/** Name and version of this server. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
}

/** Everything that clients find at one path. */
export interface Published {
  readonly info: ServerInfo
  readonly catalogue: () => Catalogue
  readonly withheld: FindWithheld
  readonly calls: Calls
  /** Absent if this path publishes no resources and prompts. */
  readonly resources?: SlotView<Resource> | undefined
  readonly prompts?: SlotView<Prompt> | undefined
  readonly changes: Changes
  readonly log: Log
}

/** Returns the server of a tool that has changed and waits for approval, `undefined` for any other name. */
type FindWithheld = (name: string, ctx: CallContext) => Promise<string | undefined>

/** Uses the known state of the servers and sends no request. */
export function createFindWithheld(clients: Pick<McpClients, 'list'> | undefined, { isPublished }: ToolSet): FindWithheld {
  return async (name, ctx) => {
    if (clients === undefined || !isPublished(name)) return undefined
    const servers = (await clients.list(ctx)).filter(({ state }) => state !== 'disabled')
    return servers.find(({ name: server, changed = [] }) => changed.some(tool => bridgedName(server, tool) === name))?.name
  }
}
