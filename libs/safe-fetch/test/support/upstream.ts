import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { createGuardedFetch, type GuardedFetchOptions, type GuardedRequest, readBody } from '@svc/safe-fetch'
import { expect } from 'chai'

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

/** A server on the loopback that answers as the test says, and what it was asked. */
export async function upstream(answer: Answer, tls?: { cert: string; key: string }) {
  const asked: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  const listener: RequestListener = async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    asked.push({ method: request.method!, url: request.url!, headers: request.headers, body })
    answer(request, response)
  }
  const server: Server = tls ? createTlsServer(tls, listener) : createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  // also those that never came as far as HTTP, such as one whose handshake failed
  const sockets = new Set<Socket>()
  server.on('connection', socket => sockets.add(socket.once('close', () => sockets.delete(socket))))
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise(resolve => server.close(resolve))
  }
  return { server, asked, port, url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`, [Symbol.asyncDispose]: close }
}

/** Fetches one page whole, from the loopback unless `allow` says otherwise. */
export async function get(url: string, options: GuardedFetchOptions = {}, request: GuardedRequest & { cut?: boolean } = {}) {
  await using guarded = createGuardedFetch({ allow: ['127.0.0.1'], ...options })
  const response = await guarded.fetch(url, { signal: new AbortController().signal }, request)
  const { bytes, cut } = await readBody(response.body, { cut: request.cut ?? false })
  return { ...response, bytes, text: Buffer.from(bytes).toString(), cut }
}

export const refusal = (
  work: Promise<unknown>
): Promise<Error & { code?: string; details?: Record<string, unknown>; hint?: string }> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error
  )
