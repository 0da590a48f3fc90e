import { openLoopback } from '@svc/mcp-protocol/oauth'
import { createMcpClient } from './mcp-client.ts'
import type { HttpOptions, Person } from './client-types.ts'

export interface LoginOptions {
  /** Shows the login page: opens a browser, or prints the address. */
  readonly show: (page: URL) => void | Promise<void>
  /** Milliseconds to wait for the person; default 300,000. */
  readonly waitMs?: number
  /** The local port of the redirect address; default: any free port. */
  readonly port?: number
}

const WAIT_MS = 300_000

/**
 * Logs a user in, and stores the tokens in `options.oauth.storage`: `await loginMcp({ url, oauth: { storage } }, { show: page => open(page.href) })`. Throws
 * MCP_CALL_FAILED, and the reason of an abort.
 */
export async function loginMcp(
  options: HttpOptions,
  { show, waitMs, port = 0 }: LoginOptions,
  ctx: { readonly signal?: AbortSignal } = {}
): Promise<void> {
  await using person = await openLoopback(show, port)
  await loginWith(person, options, ctx, waitMs)
}

/** The same with a person whose port is open already. */
export async function loginWith(
  person: Person,
  options: HttpOptions,
  ctx: { readonly signal?: AbortSignal },
  waitMs: number = WAIT_MS
): Promise<void> {
  const oauth = { ...options.oauth, person }
  await using client = createMcpClient({ ...options, connectMs: waitMs, retryAttempts: 0, oauth })
  await client.connect(ctx)
}
