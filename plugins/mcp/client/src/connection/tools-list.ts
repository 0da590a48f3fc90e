import { type ListedTool, readToolList, readToolPage, refused, RPC, type ToolPage, toolNotFound } from '@svc/mcp-protocol'
import { definedOf } from '@svc/plugin-kit'
import type { McpConnection } from './connection.ts'
import type { ConnectionManager } from './connection-manager.ts'
import type { ResolvedOptions } from './resolved-options.ts'

export type CheckedTools = ReturnType<typeof createCatalogue>

/** Lists the tools of a server, and keeps the last list. Calls `changed` when it is discarded. */
export function createCatalogue(resolved: ResolvedOptions, manager: ConnectionManager, changed: () => void) {
  const isUsed = (tool: string) => resolved.input.tools?.includes(tool) ?? true
  let known: ReadonlyMap<string, ListedTool> | undefined
  async function list(signal: AbortSignal) {
    // a list alone does not reset the count of failures: a server can list its tools and crash on each call
    const connection = await manager.ready(signal)
    const page = (cursor: string | undefined) => readPage(resolved.name, connection, cursor, signal)
    const { tools, problems } = await readToolList(resolved.limits, page)
    known = new Map(tools.map(tool => [tool.name, tool]))
    return { tools: tools.filter(tool => isUsed(tool.name)), problems }
  }
  return {
    list,
    /** Throws MCP_CALL_FAILED for a tool that the options of the client exclude. */
    check(tool: string) {
      if (!isUsed(tool)) throw toolNotFound(resolved.name, tool, { delivered: 'no' })
    },
    /** Lists the tools if there is no list. */
    async tool(name: string, signal: AbortSignal): Promise<ListedTool | undefined> {
      if (known === undefined) await list(signal)
      return known?.get(name)
    },
    /** Discards the list. */
    forget() {
      known = undefined
      changed()
    },
  }
}

async function readPage(
  server: string,
  connection: McpConnection,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<ToolPage> {
  const params = () => ({
    ...definedOf({ cursor }),
    ...(connection.isStateless && { _meta: connection.meta([]) }),
  })
  const answer = await connection.request('tools/list', params, { signal })
  if ('result' in answer) return readToolPage(server, answer.result)
  if (answer.error.code === RPC.methodUnknown) return { tools: [] }
  throw refused(server, '', answer.error)
}
