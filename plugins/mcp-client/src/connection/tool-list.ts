import { type ListedTool, readTool, RPC } from '@svc/mcp'
import type { ToolList } from './client-types.ts'
import type { Connection } from './connection.ts'
import { protocolError, refused } from './failures.ts'
import type { Settled } from './options.ts'

/** What is gathered of a list. */
interface Gathered {
  readonly tools: Map<string, ListedTool>
  readonly faults: string[]
  bytes: number
}

const MOST_FAULTS = 100

/** Asks for all tools, page by page. A tool, or a page, that breaks a limit is left out, and said. Throws MCP_CALL_FAILED. */
export async function listAll(settled: Settled, connection: Connection, signal: AbortSignal): Promise<ToolList> {
  const { limits } = settled
  const found: Gathered = { tools: new Map(), faults: [], bytes: 0 }
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await pageOf(settled, connection, cursor, signal)
    const room = page.tools.every(raw => add(found, raw, settled))
    cursor = room ? page.nextCursor : undefined
    if (cursor === undefined) break
    if (seen.has(cursor)) fault(found, 'its list leads back to a page that was there before')
    else if (seen.size + 1 >= limits.pages) fault(found, `its list has more than ${limits.pages} pages: the rest is left out`)
    else continue
    break
  } while (seen.add(cursor))
  return { tools: [...found.tools.values()], faults: found.faults }
}

interface Page {
  readonly tools: readonly unknown[]
  readonly nextCursor?: string
}

async function pageOf(
  { name }: Settled,
  { exchange, stateless, meta }: Connection,
  cursor: string | undefined,
  signal: AbortSignal
): Promise<Page> {
  const params = () => ({ ...(cursor !== undefined && { cursor }), ...(stateless && { _meta: meta([]) }) })
  const answer = await exchange.request('tools/list', params, { signal })
  if ('error' in answer) {
    if (answer.error.code === RPC.methodUnknown) return { tools: [] }
    throw refused(name, '', answer.error)
  }
  const { tools, nextCursor } = answer.result as { tools?: unknown; nextCursor?: unknown }
  if (!Array.isArray(tools)) throw protocolError(name, 'its list of tools is no list')
  return { tools, ...(typeof nextCursor === 'string' && nextCursor !== '' && { nextCursor }) }
}

/** False where no more is taken. */
function add(found: Gathered, raw: unknown, { limits }: Settled): boolean {
  if (found.tools.size >= limits.tools) return fault(found, `it has more than ${limits.tools} tools: the rest is left out`)
  const tool = readTool(raw, limits)
  if (typeof tool === 'string') fault(found, tool)
  else if (found.tools.has(tool.name)) fault(found, `tool "${tool.name}": it is listed twice`)
  else {
    found.bytes += JSON.stringify(tool).length
    if (found.bytes > limits.resultBytes)
      return fault(found, `its tools are larger than ${limits.resultBytes} bytes: the rest is left out`)
    found.tools.set(tool.name, tool)
  }
  return true
}

function fault({ faults }: Gathered, text: string): false {
  if (faults.length < MOST_FAULTS) faults.push(text)
  return false
}
