import { withTimeout } from '@svc/core'
import type { ToolResult } from '@svc/core/contracts'
import { failureOf, fromMcpSchema, textOfResult, toolNotFound } from '@svc/mcp-protocol'
import { Calls } from './calls/calls.ts'
import type { AbortOptions, CallAnswer, McpChange, McpClient } from './client-types.ts'
import { ConnectionManager } from './connection-manager.ts'
import { aborted, failed, noResult, tooSlow } from './failures.ts'
import type { McpClientOptions } from './options.ts'
import { policyOf, positive, type ResolvedOptions, resolveOptions } from './resolved-options.ts'
import { createCatalogue } from './tool-list.ts'

/** Limit for servers that report changed tools all the time: each report leads to a new list. */
const TOOLS_MS = 1_000

/**
 * Makes a client of one server. It connects on the first call: `await using files = createMcpClient({ command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] })`,
 * then `await files.callTool('read_text_file', { path: 'README.md' })`. Throws CONFIG_INVALID.
 */
export function createMcpClient(options: McpClientOptions): McpClient {
  const resolved = resolveOptions(options)
  const { name, idleMs } = resolved
  const listeners = new ChangeListeners()
  const toolsChanged = createThrottle(TOOLS_MS, () => listeners.notify({ type: 'tools' }))
  const manager = new ConnectionManager(resolved, change => {
    if (change.type === 'disconnected') calls.disconnected()
    if (change.type === 'tools') toolsChanged.trigger()
    else listeners.notify(change)
  })
  const catalogue = createCatalogue(resolved, manager, toolsChanged.trigger)
  let idleTimer: NodeJS.Timeout | undefined
  const calls = new Calls(resolved, manager, catalogue, () => {
    clearTimeout(idleTimer)
    if (idleMs > 0 && calls.count === 0) idleTimer = setTimeout(() => void manager.disconnect('it was idle'), idleMs).unref()
  })
  const close = async () => {
    await manager.close()
    clearTimeout(idleTimer)
    toolsChanged.stop()
    listeners.clear()
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
      const { hash: _hash, stripped: _stripped, paramHeaders: _headers, ...schema } = listed
      return fromMcpSchema(schema)
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
    onDisconnect: callback => listeners.add(change => change.type === 'disconnected' && callback(change.reason)),
    onChange: callback => listeners.add(callback),
    setReconnectPolicy: (retryAttempts, backoff) => manager.setPolicy(policyOf(retryAttempts, backoff)),
    setEnabled: enabled => manager.setEnabled(enabled),
    setDegraded: reason => manager.setDegraded(reason),
    disconnect: reason => manager.disconnect(reason),
    close,
    [Symbol.asyncDispose]: close,
  }
}

class ChangeListeners {
  readonly #all = new Set<(change: McpChange) => void>()

  /** The same callback can be added twice. Returns a function that removes it. */
  add(callback: (change: McpChange) => void): () => void {
    const listener = (change: McpChange) => callback(change)
    this.#all.add(listener)
    return () => void this.#all.delete(listener)
  }

  /** A listener that throws is reported as a warning of the process; it does not end the connection. */
  notify(change: McpChange): void {
    for (const listener of this.#all)
      try {
        listener(change)
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error))
      }
  }

  clear(): void {
    this.#all.clear()
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

/** Calls back at once, then at most once in `ms` milliseconds, however often it is triggered. */
function createThrottle(ms: number, call: () => void) {
  let timer: NodeJS.Timeout | undefined
  let again = false
  function trigger(): void {
    again = timer !== undefined
    if (again) return
    timer = setTimeout(() => {
      timer = undefined
      if (again) trigger()
    }, ms)
    call()
  }
  return {
    trigger,
    stop() {
      clearTimeout(timer)
      again = false
    },
  }
}

function answerOf({ content, structured, isError }: ToolResult): CallAnswer {
  const error = isError === true ? { class: 'tool_error' as const, message: textOfResult(content) } : null
  return { content, ...(structured !== undefined && { structured }), error }
}
