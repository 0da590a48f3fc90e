import { protocolError } from './failures.ts'
import type { McpLimits } from './limits.ts'
import { type ListedTool, readTool } from './listed-tool.ts'

/** The tools of a server. */
export interface ToolList {
  readonly tools: readonly ListedTool[]
  /** The tools that were left out, and the reasons. */
  readonly problems: readonly string[]
}

/** One page of a list of tools. */
export interface ToolPage {
  readonly tools: readonly unknown[]
  readonly nextCursor?: string
}

const MAX_PROBLEMS = 100

/** Reads the result of `tools/list`. Throws MCP_CALL_FAILED. */
export function readToolPage(server: string, result: unknown): ToolPage {
  const { tools, nextCursor } = result as { readonly tools?: unknown; readonly nextCursor?: unknown }
  if (!Array.isArray(tools)) throw protocolError(server, 'its list of tools is not an array')
  return { tools, ...(typeof nextCursor === 'string' && nextCursor !== '' && { nextCursor }) }
}

/** Reads all tools, page by page: at most `resultBytes` in all. Leaves out a tool or a page that breaks a limit, and reports it. Throws the error of `page`. */
export async function readToolList(
  bounds: Pick<McpLimits, 'tools' | 'pages' | 'schemaDepth' | 'toolBytes' | 'resultBytes'>,
  page: (cursor: string | undefined) => Promise<ToolPage>
): Promise<ToolList> {
  const tools = new Map<string, ListedTool>()
  const problems: string[] = []
  let bytes = 0
  const report = (problem: string) => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem)
    return false
  }
  /** Returns false once a limit of the whole list is reached. */
  const add = (raw: unknown) => {
    if (tools.size >= bounds.tools) return report(`it has more than ${bounds.tools} tools: the rest is left out`)
    const tool = readTool(raw, bounds)
    if (typeof tool === 'string') report(tool)
    else if (tools.has(tool.name)) report(`tool "${tool.name}": it is listed twice`)
    else {
      bytes += JSON.stringify(tool).length
      if (bytes > bounds.resultBytes) return report(`its tools are larger than ${bounds.resultBytes} bytes: the rest is left out`)
      tools.set(tool.name, tool)
    }
    return true
  }
  const seen = new Set<unknown>()
  let cursor: string | undefined
  let isRead: boolean
  do {
    seen.add(cursor)
    const { tools: raw, nextCursor } = await page(cursor)
    isRead = raw.every(add)
    cursor = nextCursor
  } while (
    isRead &&
    cursor !== undefined &&
    (!seen.has(cursor) || report('its list leads back to an earlier page')) &&
    (seen.size < bounds.pages || report(`its list has more than ${bounds.pages} pages: the rest is left out`))
  )
  return { tools: [...tools.values()], problems }
}
