import { createMcpClient } from '../client.ts'
import type { HttpOptions } from '../options.ts'
import { openLoopback } from './loopback.ts'

export interface LoginOptions {
  /** Shows the page where the person logs in: opens a browser, or prints the address. */
  readonly show: (page: URL) => void | Promise<void>
  /** Milliseconds the person has; default 300,000. */
  readonly waitMs?: number
  /** Where the browser comes back to on this machine; default: any free port. */
  readonly port?: number
}

const WAIT_MS = 300_000

/**
 * Logs a person in at a server that wants it, and keeps what it brings in `options.oauth.storage`: `await loginMcp({ url, oauth: { storage } }, { show: page => open(page.href) })`. Throws
 * MCP_CALL_FAILED, and what the signal aborted with.
 */
export async function loginMcp(
  options: HttpOptions,
  { show, waitMs = WAIT_MS, port = 0 }: LoginOptions,
  use: { readonly signal?: AbortSignal } = {}
): Promise<void> {
  await using person = await openLoopback(show, port)
  await using client = createMcpClient({
    ...options,
    connectMs: waitMs,
    reconnect: { maxAttempts: 0, backoff: 'constant' },
    oauth: { ...options.oauth, person },
  })
  await client.connect(use)
}
