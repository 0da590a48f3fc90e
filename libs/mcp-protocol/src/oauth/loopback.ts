import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Person } from './options.ts'

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
