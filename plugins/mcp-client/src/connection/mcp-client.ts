import type { McpFailure } from '@svc/core/contracts'
import { failureOf, fromMcpSchema, type ListedTool } from '@svc/mcp'
import { type Calls, createCalls } from './calls/calls.ts'
import { wordsOf } from './calls/messages.ts'
import type { Arguments, CallAnswer, McpChange, McpClient, ToolList, Waiting } from './client-types.ts'
import { createSupervisor, type Supervisor } from './connection-manager.ts'
import { cancelled, failed, toolNotFound, tooSlow } from './failures.ts'
import { above0, type McpClientOptions, policyOf, settle, type Settled } from './options.ts'
import { createGathered } from './timing.ts'
import { listAll } from './tool-list.ts'

/** A server may say without end that its tools are others: each time they are listed anew. */
const TOOLS_MS = 1_000

/**
 * Makes a client of one server. It connects when it is first needed: `await using files = createMcpClient({ command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] })`,
 * then `await files.callTool('read_text_file', { path: 'README.md' })`. Throws CONFIG_INVALID.
 */
export function createMcpClient(options: McpClientOptions): McpClient {
  const settled = settle(options)
  const listeners = new Set<(change: McpChange) => void>()
  const tell = (change: McpChange) => {
    for (const listener of listeners) toldTo(listener, change)
  }
  const tools = createGathered(settled.clock, TOOLS_MS, () => tell({ type: 'tools' }))
  const emit = (change: McpChange) => {
    if (change.type === 'disconnected') calls.disconnected()
    if (change.type === 'tools') tools.note()
    else tell(change)
  }
  const supervisor = createSupervisor(settled, emit)
  const catalogue = createCatalogue(settled, supervisor, emit)
  const idle = createIdle(settled, supervisor, () => calls.count())
  const calls: Calls = createCalls(settled, supervisor, {
    tool: (name, signal) => catalogue.tool(name, signal),
    forget: () => catalogue.forget(),
    changed: () => idle.changed(),
  })
  const onChange = (callback: (change: McpChange) => void) => {
    // one callback may be given twice
    const listener = (change: McpChange) => callback(change)
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  const close = async () => {
    idle.stop()
    await supervisor.close()
    tools.stop()
    listeners.clear()
  }
  return {
    name: settled.name,
    status: () => supervisor.status(),
    connect: async use => void (await bounded(settled, use, signal => supervisor.connect(signal))),
    listTools: use => bounded(settled, use, catalogue.list),
    async getToolSchema(name, use) {
      const tool = await bounded(settled, use, signal => catalogue.tool(name, signal))
      if (tool === undefined) throw toolNotFound(settled.name, name)
      const { hash: _hash, stripped: _stripped, paramHeaders: _headers, ...schema } = tool
      return fromMcpSchema(schema)
    },
    callTool: (name, args, how) => callTool(calls, name, args, how),
    call: (name, args, how, use) => calls.call(name, args, how, use),
    onDisconnect: callback => onChange(change => change.type === 'disconnected' && callback(change.reason)),
    onChange,
    setReconnectPolicy: (maxAttempts, backoff) => supervisor.setPolicy(policyOf({ maxAttempts, backoff })),
    setEnabled: enabled => supervisor.setEnabled(enabled),
    setDegraded: reason => supervisor.setDegraded(reason),
    disconnect: reason => supervisor.disconnect(reason),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** A listener that throws is told to whoever reads the warnings of this process: the connection has its own life. */
function toldTo(listener: (change: McpChange) => void, change: McpChange): void {
  try {
    listener(change)
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error))
  }
}

/** Does it within the time that a connection and a list may take. */
async function bounded<T>(
  { name, connectMs, clock }: Settled,
  use: Waiting = {},
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  const ending = new AbortController()
  const onAbort = () => ending.abort(cancelled(name))
  const stop = clock.after(connectMs, () => ending.abort(tooSlow(name, connectMs)))
  use.signal?.addEventListener('abort', onAbort, { once: true })
  if (use.signal?.aborted) onAbort()
  try {
    return await work(ending.signal)
  } catch (error) {
    throw failed(name, error)
  } finally {
    stop()
    use.signal?.removeEventListener('abort', onAbort)
  }
}

/** The tools as they were last listed. */
function createCatalogue(settled: Settled, supervisor: Supervisor, emit: (change: McpChange) => void) {
  let known: Map<string, ListedTool> | undefined
  async function list(signal: AbortSignal): Promise<ToolList> {
    const connection = await supervisor.ready(signal)
    // who lists its tools and dies has kept no promise yet
    const found = await listAll(settled, connection, signal)
    known = new Map(found.tools.map(tool => [tool.name, tool]))
    return found
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

/** Gives the connection up when nobody has called for long enough. */
function createIdle({ idleMs, clock }: Settled, supervisor: Supervisor, count: () => number) {
  let cancel: (() => void) | undefined
  let over = idleMs === 0
  const wait = () => {
    cancel?.()
    cancel = undefined
  }
  const recycle = () => {
    if (count() === 0) void supervisor.disconnect('nobody has used it for a while')
  }
  return {
    stop() {
      over = true
      wait()
    },
    changed() {
      if (over) return
      wait()
      if (count() === 0) cancel = clock.after(idleMs, recycle)
    },
  }
}

async function callTool(
  calls: Calls,
  name: string,
  args: Arguments,
  { timeout, signal = new AbortController().signal }: { readonly timeout?: number } & Waiting = {}
): Promise<CallAnswer> {
  const options = timeout === undefined ? {} : { timeoutMs: above0('timeout', timeout) * 1_000 }
  try {
    for await (const step of calls.call(name, args, options, { signal }))
      if (step.type === 'result') {
        const { content, structured, isError } = step.result
        const error: McpFailure | null = isError === true ? { class: 'tool_error', message: wordsOf(step.result) } : null
        return { content, ...(structured !== undefined && { structured }), error }
      }
    return { content: [], error: { class: 'cancelled', message: 'the call ended without an answer' } }
  } catch (error) {
    return { content: [], error: failureOf(error) }
  }
}
