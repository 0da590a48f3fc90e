import { type ListedTool, readTool, RPC } from '@svc/mcp-protocol'
import type { ToolList } from './client-types.ts'
import type { Connection } from './connection.ts'
import { protocolError, refused } from './failures.ts'
import type { ResolvedOptions } from './options.ts'

interface ToolCollection {
  readonly tools: Map<string, ListedTool>
  readonly faults: string[]
  bytes: number
}

const MAX_FAULTS = 100

/** Lists all tools, page by page. Leaves out a tool or a page that breaks a limit, and reports it. Throws MCP_CALL_FAILED. */
export async function listAll(options: ResolvedOptions, connection: Connection, signal: AbortSignal): Promise<ToolList> {
  const { limits } = options
  const all: ToolCollection = { tools: new Map(), faults: [], bytes: 0 }
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await readPage(options, connection, cursor, signal)
    cursor = page.tools.every(raw => add(all, raw, options)) ? page.nextCursor : undefined
    if (cursor === undefined) break
    if (seen.has(cursor)) report(all, 'its list leads back to an earlier page')
    else if (seen.size + 1 >= limits.pages) report(all, `its list has more than ${limits.pages} pages: the rest is left out`)
    else continue
    break
  } while (seen.add(cursor))
  return { tools: [...all.tools.values()], faults: all.faults }
}

async function readPage(
  { name }: ResolvedOptions,
  { rpc, stateless, meta }: Connection,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<{ readonly tools: readonly unknown[]; readonly nextCursor?: string }> {
  const params = () => ({ ...(cursor !== undefined && { cursor }), ...(stateless && { _meta: meta([]) }) })
  const answer = await rpc.request('tools/list', params, { signal })
  if ('error' in answer) {
    if (answer.error.code === RPC.methodUnknown) return { tools: [] }
    throw refused(name, '', answer.error)
  }
  const { tools, nextCursor } = answer.result as { tools?: unknown; nextCursor?: unknown }
  if (!Array.isArray(tools)) throw protocolError(name, 'its list of tools is not an array')
  return { tools, ...(typeof nextCursor === 'string' && nextCursor !== '' && { nextCursor }) }
}

/** Returns false once a limit of the whole list is reached. */
function add(all: ToolCollection, raw: unknown, { limits }: ResolvedOptions): boolean {
  if (all.tools.size >= limits.tools) return report(all, `it has more than ${limits.tools} tools: the rest is left out`)
  const tool = readTool(raw, limits)
  if (typeof tool === 'string') report(all, tool)
  else if (all.tools.has(tool.name)) report(all, `tool "${tool.name}": it is listed twice`)
  else {
    all.bytes += JSON.stringify(tool).length
    if (all.bytes > limits.resultBytes)
      return report(all, `its tools are larger than ${limits.resultBytes} bytes: the rest is left out`)
    all.tools.set(tool.name, tool)
  }
  return true
}

function report({ faults }: ToolCollection, text: string): false {
  if (faults.length < MAX_FAULTS) faults.push(text)
  return false
}
