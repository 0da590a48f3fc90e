import { createCoalescer, pause, withTimeout } from '@svc/core'
import type { ToolResult } from '@svc/core/contracts'
import { aborted, failed, failureOf, fromMcpSchema, pinnedOf, textOfResult, toolNotFound, tooSlow } from '@svc/mcp-protocol'
import { noResult } from '../errors.ts'
import type { AbortOptions, CallAnswer, McpChange, McpClient, McpClientOptions } from './client-types.ts'
import { ConnectionManager } from './connection-manager.ts'
import { policyOf, positive, type ResolvedOptions, resolveOptions } from './resolved-options.ts'
import { ConnectionCalls, createCatalogue, requestApp } from './tools.ts'

/** Limit for servers that report changed tools all the time: each report leads to a new list. */
const TOOLS_MS = 1_000

/**
 * Makes a client of one server. It connects on the first call: `await using files = createMcpClient({ command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] })`,
 * then `await files.callTool('read_text_file', { path: 'README.md' })`. Throws CONFIG_INVALID.
 */
export function createMcpClient(options: McpClientOptions): McpClient {
  const resolved = resolveOptions(options)
  const { name, idleMs } = resolved
  const changes = createChanges()
  const manager = new ConnectionManager(resolved, change => {
    if (change.type === 'disconnected') calls.disconnected()
    changes.notify(change)
  })
  const catalogue = createCatalogue(resolved, manager, () => changes.notify({ type: 'tools' }))
  let idleTimer: NodeJS.Timeout | undefined
  const calls = new ConnectionCalls(resolved, manager, catalogue, () => {
    clearTimeout(idleTimer)
    if (idleMs > 0 && calls.count === 0) idleTimer = setTimeout(() => void manager.disconnect('it was idle'), idleMs).unref()
  })
  const close = async () => {
    await manager.close()
    clearTimeout(idleTimer)
    changes.stop()
  }
  return {
    name,
    status: () => manager.status,
    connect: async ctx => void (await bounded(resolved, ctx, signal => manager.connect(signal))),
    listTools: ctx => bounded(resolved, ctx, catalogue.list),
    async getToolSchema(tool, ctx) {
      catalogue.check(tool)
      const listed = await bounded(resolved, ctx, signal => catalogue.tool(tool, signal))
      if (listed === undefined) throw toolNotFound(name, tool)
      return fromMcpSchema(pinnedOf(listed))
    },
    async callTool(tool, args, { timeout, signal = new AbortController().signal } = {}) {
      const how = timeout === undefined ? {} : { timeoutMs: positive('timeout', timeout, 1_000) }
      try {
        for await (const step of calls.call(tool, args, how, { signal })) if (step.type === 'result') return answerOf(step.result)
        throw noResult(name)
      } catch (error) {
        return { content: [], error: failureOf(error) }
      }
    },
    call: (tool, args, how, ctx) => calls.call(tool, args, how, ctx),
    readApp: (uri, ctx) => bounded(resolved, ctx, signal => requestApp(name, manager, uri, signal)),
    onDisconnect: callback => changes.follow(change => change.type === 'disconnected' && callback(change.reason)),
    onChange: callback => changes.follow(callback),
    setReconnectPolicy: (retryAttempts, backoff) => manager.setPolicy(policyOf(retryAttempts, backoff)),
    setEnabled: enabled => manager.setEnabled(enabled),
    setDegraded: reason => manager.setDegraded(reason),
    disconnect: reason => manager.disconnect(reason),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The listeners of a client. Reports changed tools at once, then at most once a second. */
function createChanges() {
  const listeners = new Set<(change: McpChange) => void>()
  const closing = new AbortController()
  const report = (change: McpChange) => {
    for (const listener of listeners)
      try {
        listener(change)
      } catch (error) {
        // it does not end the connection
        process.emitWarning(error instanceof Error ? error : String(error))
      }
  }
  const tools = createCoalescer(async () => {
    closing.signal.throwIfAborted()
    report({ type: 'tools' })
    await pause(TOOLS_MS, closing.signal)
  })
  return {
    notify: (change: McpChange) => (change.type === 'tools' ? void tools.request().catch(() => {}) : report(change)),
    /** The same callback can be added twice. Returns a function that removes it. */
    follow(callback: (change: McpChange) => void): () => void {
      const listener = (change: McpChange) => callback(change)
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    stop() {
      closing.abort()
      listeners.clear()
    },
  }
}

/** Applies the time limit of a connection to `work`. */
async function bounded<T>(
  { name, connectMs }: ResolvedOptions,
  { signal }: AbortOptions = {},
  work: (signal: AbortSignal) => Promise<T>
): Promise<T> {
  try {
    return await withTimeout(connectMs, work, { ...(signal && { signal }), late: () => tooSlow(name, connectMs, 'no') })
  } catch (error) {
    throw signal?.aborted ? aborted(name, signal.reason, connectMs, 'no') : failed(name, error)
  }
}

function answerOf({ content, structured, isError }: ToolResult): CallAnswer {
  const error = isError === true ? { class: 'tool_error' as const, message: textOfResult(content) } : null
  return { content, ...(structured !== undefined && { structured }), error }
}
