import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net'
import type { Readable } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { Server as GrpcServer, loadPackageDefinition, ServerCredentials } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { TestCertificate } from '@svc/testing'
import { SMTPServer } from 'smtp-server'
// @ts-expect-error its types are a package of their own
import { WebSocketServer } from 'ws'

interface TestServer extends AsyncDisposable {
  readonly port: number
}

const serving = async (server: NetServer, more: () => void = () => {}): Promise<TestServer> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      more()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Answers with what it is sent. */
export const startEcho = () =>
  serving(
    createServer({ allowHalfOpen: true }, socket => {
      socket.on('error', () => {})
      socket.pipe(socket)
    })
  )

export const startTls = ({ cert, key }: TestCertificate) =>
  serving(
    createTlsServer({ cert, key }, socket => {
      socket.on('error', () => {})
      socket.pipe(socket)
    })
  )

export const startHttp = () => serving(createHttpServer((_, answer) => answer.end('over HTTP')))

export const startHttps = ({ cert, key }: TestCertificate) =>
  serving(createHttpsServer({ cert, key }, (_, answer) => answer.end('over HTTPS')))

export const startHttp2 = ({ cert, key }: TestCertificate) =>
  serving(createSecureServer({ cert, key }, (_, answer) => answer.end('over HTTP/2')))

/** A WebSocket server behind TLS that answers with what it is sent. */
export function startWebSocket({ cert, key }: TestCertificate): Promise<TestServer> {
  const server = createHttpsServer({ cert, key })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket: { on(event: string, heard: (data: unknown) => void): void; send(data: unknown): void }) =>
    socket.on('message', data => socket.send(data))
  )
  return serving(server, () => sockets.close())
}

/** An SMTP server with STARTTLS; `mails` are what it took. */
export async function startSmtp({ cert, key }: TestCertificate): Promise<TestServer & { readonly mails: readonly string[] }> {
  const mails: string[] = []
  const server = new SMTPServer({
    cert,
    key,
    authOptional: true,
    onData(stream: Readable, _session: unknown, done: () => void) {
      const chunks: Buffer[] = []
      stream
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => {
          mails.push(String(Buffer.concat(chunks)))
          done()
        })
    },
  })
  server.on('error', () => {})
  const listening = server.listen(0, '127.0.0.1') as NetServer
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo
  return { port, mails, [Symbol.asyncDispose]: () => new Promise<void>(resolve => server.close(() => resolve())) }
}

/** A gRPC server with one method, `test.Echo/Say`. */
export async function startGrpc(proto: string): Promise<TestServer> {
  const { Echo } = loadPackageDefinition(loadSync(proto)).test as unknown as { Echo: { service: never } }
  const server = new GrpcServer()
  server.addService(Echo.service, {
    Say: ({ request }: { request: unknown }, answer: (error: null, value: unknown) => void) => answer(null, request),
  })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => (error ? reject(error) : resolve(port)))
  return { port: await promise, [Symbol.asyncDispose]: async () => server.forceShutdown() }
}
