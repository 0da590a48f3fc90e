import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMcpClient } from '../mcp-client.ts'
import type { HttpOptions, Person } from '../options.ts'

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

/** A person with a browser on this machine. */
export interface Loopback extends Person, AsyncDisposable {}

const page = (text: string) => `<!doctype html><meta charset="utf-8"><title>svc</title><p>${text}`
const CAME = page('svc has the answer. You can close this page.')
const STRANGE = page('This is not the answer to a login that svc waits for.')
const PATH = '/callback'

/**
 * Waits at 127.0.0.1 for the browser to come back; `show` opens the page, or prints where it is. `port` 0 takes any. Any page of the web can send a browser here: what
 * does not bring the state of the login is not taken for its answer.
 */
export async function openLoopback(show: (page: URL) => void | Promise<void>, port: number): Promise<Loopback> {
  let came = Promise.withResolvers<URLSearchParams>()
  let state: string | null = null
  const server = createServer((request, response) => {
    const [path, query] = (request.url ?? '').split('?', 2)
    if (path !== PATH) return void response.writeHead(404).end()
    const answer = new URLSearchParams(query)
    const isAnswer = state !== null && answer.get('state') === state
    response.writeHead(isAnswer ? 200 : 400, { 'content-type': 'text/html', connection: 'close' }).end(isAnswer ? CAME : STRANGE)
    if (isAnswer) came.resolve(answer)
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    redirectUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    async authorize(shown) {
      came = Promise.withResolvers()
      state = shown.searchParams.get('state')
      await show(shown)
      return came.promise
    },
    [Symbol.asyncDispose]: () => closed(server),
  }
}

async function closed(server: Server): Promise<void> {
  server.close()
  server.closeAllConnections()
  if (server.listening) await once(server, 'close')
}
