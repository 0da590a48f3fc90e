import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMcpClient } from '../mcp-client.ts'
import type { HttpOptions, Person } from '../client-types.ts'

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
  await using client = createMcpClient({
    ...options,
    connectMs: waitMs,
    retryAttempts: 0,
    oauth: { ...options.oauth, person },
  })
  await client.connect(ctx)
}

/** A person with a browser on this machine. Dispose it to close the local port. */
export interface Loopback extends Person, AsyncDisposable {
  /** Takes the query of the address to which the browser came back. Returns false for that of another login. */
  take(query: URLSearchParams): boolean
}

const page = (text: string) => `<!doctype html><meta charset="utf-8"><title>svc</title><p>${text}`
const RECEIVED = page('svc has received the login. You can close this page.')
const NOT_EXPECTED = page('svc does not wait for this login.')
const PATH = '/callback'

/**
 * Listens on 127.0.0.1 for the redirect of the browser; `show` opens or prints the page, and `port` 0 takes any port. Any web page can send a browser here, so only a
 * request with the state of this login counts.
 */
export async function openLoopback(show: (page: URL) => void | Promise<void>, port: number): Promise<Loopback> {
  let received = Promise.withResolvers<URLSearchParams>()
  let state: string | null = null
  const take = (answer: URLSearchParams) => {
    const isAnswer = state !== null && answer.get('state') === state
    if (isAnswer) received.resolve(answer)
    return isAnswer
  }
  const server = createServer((request, response) => {
    const [path, query] = (request.url ?? '').split('?', 2)
    if (path !== PATH) return void response.writeHead(404).end()
    const isAnswer = take(new URLSearchParams(query))
    response
      .writeHead(isAnswer ? 200 : 400, { 'content-type': 'text/html', connection: 'close' })
      .end(isAnswer ? RECEIVED : NOT_EXPECTED)
  })
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    take,
    redirectUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`,
    async authorize(shown) {
      received = Promise.withResolvers()
      state = shown.searchParams.get('state')
      await show(shown)
      return received.promise
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await server[Symbol.asyncDispose]()
    },
  }
}
