import { type ListedTool, protocolError, readTool, refused, RPC } from '@svc/mcp-protocol'
import type { ToolList } from './client-types.ts'
import type { Connection } from './connection.ts'
import type { ResolvedOptions } from './resolved-options.ts'

const MAX_PROBLEMS = 100

/** Lists all tools, page by page. Leaves out a tool or a page that breaks a limit, and reports it. Throws MCP_CALL_FAILED. */
export async function listTools(options: ResolvedOptions, connection: Connection, signal: AbortSignal): Promise<ToolList> {
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

async function readPage(
  server: string,
  { rpc, meta }: Connection,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<Page> {
  const params = () => ({ ...(cursor !== undefined && { cursor }), ...(rpc.isStateless && { _meta: meta([]) }) })
  const answer = await rpc.request('tools/list', params, { signal })
  if ('error' in answer) {
    if (answer.error.code === RPC.methodUnknown) return { tools: [] }
    throw refused(server, '', answer.error)
  }
  const { tools, nextCursor } = answer.result as { readonly tools?: unknown; readonly nextCursor?: unknown }
  if (!Array.isArray(tools)) throw protocolError(server, 'its list of tools is not an array')
  return { tools, ...(typeof nextCursor === 'string' && nextCursor !== '' && { nextCursor }) }
}
