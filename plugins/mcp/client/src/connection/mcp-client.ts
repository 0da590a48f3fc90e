import type { McpFailure } from '@svc/core/contracts'
import { failureOf, fromMcpSchema, type ListedTool, readTool, RPC } from '@svc/mcp-protocol'
import { type Calls, createCalls } from './calls/calls.ts'
import { textOfResult } from './calls/messages.ts'
import type { Arguments, CallAnswer, McpChange, McpClient, ToolList, AbortOptions } from './client-types.ts'
import { ConnectionManager } from './connection-manager.ts'
import type { Connection } from './connection.ts'
import { cancelled, failed, protocolError, refused, toolNotFound, tooSlow } from './failures.ts'
import { type McpClientOptions, policyOf, positive, type ResolvedOptions, resolveOptions } from './options.ts'
import { createThrottle } from './timing.ts'

/** Limit for servers that report changed tools all the time: each report leads to a new list. */
const TOOLS_MS = 1_000

/**
 * Makes a client of one server. It connects on the first call: `await using files = createMcpClient({ command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] })`,
 * then `await files.callTool('read_text_file', { path: 'README.md' })`. Throws CONFIG_INVALID.
 */
export function createMcpClient(options: McpClientOptions): McpClient {
  const resolved = resolveOptions(options)
  const listeners = new Set<(change: McpChange) => void>()
  const notify = (change: McpChange) => {
    for (const listener of listeners) notifyOne(listener, change)
  }
  const tools = createThrottle(resolved.clock, TOOLS_MS, () => notify({ type: 'tools' }))
  const emit = (change: McpChange) => {
    if (change.type === 'disconnected') calls.disconnected()
    if (change.type === 'tools') tools.trigger()
    else notify(change)
  }
  const manager = new ConnectionManager(resolved, emit)
  const catalogue = createCatalogue(resolved, manager, emit)
  const idle = createIdleGate(resolved, manager, () => calls.count())
  const calls: Calls = createCalls(resolved, manager, {
    tool: (name, signal) => catalogue.tool(name, signal),
    forget: () => catalogue.forget(),
    changed: () => idle.changed(),
  })
  const onChange = (callback: (change: McpChange) => void) => {
    // the same callback can be added twice
    const listener = (change: McpChange) => callback(change)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const close = async () => {
    idle.stop()
    await manager.close()
    tools.stop()
    listeners.clear()
  }
  return {
    name: resolved.name,
    status: () => manager.status,
    connect: async ctx => void (await bounded(resolved, ctx, signal => manager.connect(signal))),
    listTools: ctx => bounded(resolved, ctx, catalogue.list),
    async getToolSchema(name, ctx) {
      const tool = await bounded(resolved, ctx, signal => catalogue.tool(name, signal))
      if (tool === undefined) throw toolNotFound(resolved.name, name)
      const { hash: _hash, stripped: _stripped, paramHeaders: _headers, ...schema } = tool
      return fromMcpSchema(schema)
    },
    callTool: (name, args, how) => callTool(calls, name, args, how),
    call: (name, args, how, ctx) => calls.call(name, args, how, ctx),
    onDisconnect: callback => onChange(change => change.type === 'disconnected' && callback(change.reason)),
    onChange,
    setReconnectPolicy: (maxAttempts, backoff) => manager.setPolicy(policyOf({ maxAttempts, backoff })),
    setEnabled: enabled => manager.setEnabled(enabled),
    setDegraded: reason => manager.setDegraded(reason),
    disconnect: reason => manager.disconnect(reason),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A listener that throws is reported as a warning of the process; it does not end the connection. */
function notifyOne(listener: (change: McpChange) => void, change: McpChange): void {
  try {
    listener(change)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error))
  }
}

/** Applies the time limit of a connection to `work`. */
async function bounded<T>(
  { name, connectMs, clock }: ResolvedOptions,
  ctx: AbortOptions = {},
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const ending = new AbortController()
  const onAbort = () => ending.abort(cancelled(name))
  const stop = clock.after(connectMs, () => ending.abort(tooSlow(name, connectMs)))
  ctx.signal?.addEventListener('abort', onAbort, { once: true })
  if (ctx.signal?.aborted) onAbort()
  try {
    return await work(ending.signal)
  } catch (error) {
    throw failed(name, error)
  } finally {
    stop()
    ctx.signal?.removeEventListener('abort', onAbort)
  }
}

/** The tools of the last list. */
function createCatalogue(resolved: ResolvedOptions, manager: ConnectionManager, emit: (change: McpChange) => void) {
  let known: Map<string, ListedTool> | undefined
  async function list(signal: AbortSignal): Promise<ToolList> {
    // a list alone does not reset the count of failures: a server can list its tools and crash on each call
    const listed = await listAll(resolved, await manager.ready(signal), signal)
    known = new Map(listed.tools.map(tool => [tool.name, tool]))
    return listed
  }
  return {
    list,
    async tool(name: string, signal: AbortSignal): Promise<ListedTool | undefined> {
      if (known === undefined) await list(signal)
      return known?.get(name)
    },
    forget() {
      known = undefined
      emit({ type: 'tools' })
    },
  }
}

/** Closes the connection when no call has used it for long enough. */
function createIdleGate({ idleMs, clock }: ResolvedOptions, manager: ConnectionManager, count: () => number) {
  let cancel: (() => void) | undefined
  let over = idleMs === 0
  const reset = () => {
    cancel?.()
    cancel = undefined
  }
  const recycle = () => {
    if (count() === 0) void manager.disconnect('it was idle')
  }
  return {
    stop() {
      over = true
      reset()
    },
    changed() {
      if (over) return
      reset()
      if (count() === 0) cancel = clock.after(idleMs, recycle)
    },
  }
}

async function callTool(
  calls: Calls,
  name: string,
  args: Arguments,
  { timeout, signal = new AbortController().signal }: { readonly timeout?: number } & AbortOptions = {}
): Promise<CallAnswer> {
  const options = timeout === undefined ? {} : { timeoutMs: positive('timeout', timeout) * 1_000 }
  try {
    for await (const step of calls.call(name, args, options, { signal }))
      if (step.type === 'result') {
        const { content, structured, isError } = step.result
        const error: McpFailure | null = isError === true ? { class: 'tool_error', message: textOfResult(step.result) } : null
        return { content, ...(structured !== undefined && { structured }), error }
      }
    return { content: [], error: { class: 'cancelled', message: 'the call ended without an answer' } }
  } catch (error) {
    return { content: [], error: failureOf(error) }
  }
}

interface ToolCollection {
  readonly tools: Map<string, ListedTool>
  readonly problems: string[]
  bytes: number
}

const MAX_FAULTS = 100

/** Lists all tools, page by page. Leaves out a tool or a page that breaks a limit, and reports it. Throws MCP_CALL_FAILED. */
async function listAll(options: ResolvedOptions, connection: Connection, signal: AbortSignal): Promise<ToolList> {
  const { limits } = options
  const all: ToolCollection = { tools: new Map(), problems: [], bytes: 0 }
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
  return { tools: [...all.tools.values()], problems: all.problems }
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

function report({ problems }: ToolCollection, text: string): false {
  if (problems.length < MAX_FAULTS) problems.push(text)
  return false
}
