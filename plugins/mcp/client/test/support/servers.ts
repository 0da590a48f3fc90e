import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

type Answer = { readonly status?: number; readonly headers?: Record<string, string>; readonly body?: unknown }
export interface Opened extends AsyncDisposable {
  readonly url: string
  readonly seen: IncomingMessage[]
}

/** A server with scripted answers. */
export async function open(answer: (request: IncomingMessage) => Answer | Promise<Answer>): Promise<Opened> {
  const seen: IncomingMessage[] = []
  const server: Server = createServer(async (request, response) => {
    seen.push(request)
    const { status = 200, headers = {}, body } = await answer(request)
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(body === undefined ? '' : JSON.stringify(body))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

interface Rpc {
  readonly id?: unknown
  readonly method: string
}

/** A stateless tool server with one tool, that wants this to be in the header `Authorization`. */
export const toolServer = (authorized: (header: string | undefined) => boolean, statusOfCall = async () => 200) =>
  open(async request => {
    if (!authorized(request.headers.authorization)) return { status: 401, body: {} }
    const { id, method } = (await json(request)) as Rpc
    const status = method === 'tools/call' ? await statusOfCall() : 200
    if (status !== 200) return { status, body: {} }
    const common = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
    const result = {
      'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
      'tools/list': { tools: [{ name: 'now', description: 'The time.', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'noon' }] },
    }[method]
    return id === undefined ? { status: 202 } : { body: { jsonrpc: '2.0', id, result: { ...common, ...result } } }
  })
