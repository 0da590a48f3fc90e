import { type ListedTool, protocolError, readTool, refused, RPC, toolNotFound } from '@svc/mcp-protocol'
import type { ToolList } from './client-types.ts'
import type { Connection } from './connection.ts'
import type { ConnectionManager } from './connection-manager.ts'
import type { ResolvedOptions } from './resolved-options.ts'

const MAX_PROBLEMS = 100

export type Catalogue = ReturnType<typeof createCatalogue>

/** Lists the tools of a server, and keeps the last list. Calls `changed` when it is discarded. */
export function createCatalogue(resolved: ResolvedOptions, manager: ConnectionManager, changed: () => void) {
  const isUsed = (tool: string) => resolved.input.tools?.includes(tool) ?? true
  let known: ReadonlyMap<string, ListedTool> | undefined
  async function list(signal: AbortSignal) {
    // a list alone does not reset the count of failures: a server can list its tools and crash on each call
    const { tools, problems } = await listTools(resolved, await manager.ready(signal), signal)
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

/** Lists all tools, page by page. Leaves out a tool or a page that breaks a limit, and reports it. Throws MCP_CALL_FAILED. */
async function listTools(options: ResolvedOptions, connection: Connection, signal: AbortSignal): Promise<ToolList> {
  const { limits } = options
  const tools = new Map<string, ListedTool>()
  const problems: string[] = []
  let bytes = 0
  const report = (problem: string) => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem)
    return false
  }
  /** Returns false once a limit of the whole list is reached. */
  const add = (raw: unknown) => {
    if (tools.size >= limits.tools) return report(`it has more than ${limits.tools} tools: the rest is left out`)
    const tool = readTool(raw, limits)
    if (typeof tool === 'string') report(tool)
    else if (tools.has(tool.name)) report(`tool "${tool.name}": it is listed twice`)
    else {
      bytes += JSON.stringify(tool).length
      if (bytes > limits.resultBytes) return report(`its tools are larger than ${limits.resultBytes} bytes: the rest is left out`)
      tools.set(tool.name, tool)
    }
    return true
  }
  const seen = new Set<unknown>()
  let cursor: string | undefined
  let isRead: boolean
  do {
    seen.add(cursor)
    const page = await readPage(options.name, connection, cursor, signal)
    isRead = page.tools.every(add)
    cursor = page.nextCursor
  } while (
    isRead &&
    cursor !== undefined &&
    (!seen.has(cursor) || report('its list leads back to an earlier page')) &&
    (seen.size < limits.pages || report(`its list has more than ${limits.pages} pages: the rest is left out`))
  )
  return { tools: [...tools.values()], problems }
}

interface Page {
  readonly tools: readonly unknown[]
  readonly nextCursor?: string
}

async function readPage(server: string, connection: Connection, cursor: string | undefined, signal: AbortSignal): Promise<Page> {
  const params = () => ({
    ...(cursor !== undefined && { cursor }),
    ...(connection.isStateless && { _meta: connection.meta([]) }),
  })
  const answer = await connection.request('tools/list', params, { signal })
  if ('error' in answer) {
    if (answer.error.code === RPC.methodUnknown) return { tools: [] }
    throw refused(server, '', answer.error)
  }
  const { tools, nextCursor } = answer.result as { readonly tools?: unknown; readonly nextCursor?: unknown }
  if (!Array.isArray(tools)) throw protocolError(server, 'its list of tools is not an array')
  return { tools, ...(typeof nextCursor === 'string' && nextCursor !== '' && { nextCursor }) }
}
