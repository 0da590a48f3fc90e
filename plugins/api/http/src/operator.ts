import type { ClientRequest, IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { type Duplex, duplexPair } from 'node:stream'
import type { Principal } from '@svc/core'
import type { OperatorAnswers, OperatorRequest } from '@svc/core/contracts'
import type { HttpListener } from './listener.ts'

/** Serves requests of the operator of this machine, which arrive over the control socket of the supervisor, not over the port. */
export interface OperatorRequests {
  readonly answer: OperatorAnswers
  /** The principal of such a request. */
  readonly principalOf: (req: IncomingMessage) => Principal | undefined
}

type NodeServer = Pick<HttpListener['server'], 'emit'>

const nodeHttp = process.getBuiltinModule('node:http')
const HTTP_JSON = 'application/json'

/**
 * Each request is an HTTP message on a connection in memory, so it passes through the same middleware as all others. Only this
 * function creates such connections: a client of the port cannot claim to be the operator, whatever it sends. `server` is a plain
 * server of its own, because that of the port can demand TLS.
 */
export function createOperatorRequests(): OperatorRequests & { attach(server: NodeServer): void } {
  const principals = new WeakMap<Duplex, Principal>()
  let server: NodeServer | undefined
  return {
    attach: given => void (server = given),
    principalOf: ({ socket }) => principals.get(socket),
    async *answer(request, { signal, principal }) {
      const [near, far] = duplexPair()
      principals.set(far, principal)
      // the parts of a network connection that the server uses; the command's own signal ends a stalled one
      server!.emit('connection', Object.assign(far, { remoteAddress: '127.0.0.1', setTimeout: () => far }))
      try {
        const [answer] = (await once(send(request, near, signal), 'response', { signal })) as [IncomingMessage]
        yield { status: answer.statusCode ?? 0, headers: textHeaders(answer) }
        answer.setEncoding('utf8')
        for await (const text of answer) yield String(text)
      } finally {
        near.destroy()
        far.destroy()
      }
    },
  }
}

function send({ method, path, accept, body }: OperatorRequest, connection: Duplex, signal: AbortSignal): ClientRequest {
  const headers = {
    host: 'localhost',
    connection: 'close',
    ...(accept === undefined ? {} : { accept }),
    ...(body === undefined ? {} : { 'content-type': HTTP_JSON, 'content-length': Buffer.byteLength(body) }),
  }
  const request = nodeHttp.request({ method, path, headers, signal, createConnection: () => connection })
  return request.end(body)
}

const textHeaders = ({ headers }: IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])))
