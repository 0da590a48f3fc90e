import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server as NetServer } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { Server as GrpcServer, loadPackageDefinition, ServerCredentials } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { Certificate } from '@svc/testing'
import { SMTPServer } from 'smtp-server'
// @ts-expect-error its types are a package of their own
import { WebSocketServer } from 'ws'
import { programPath } from '../../../../../test/support/needs.ts'
import { freePort } from '../../../../../test/support/free-port.ts'

export interface TestServer extends AsyncDisposable {
  readonly port: number
}

/** PostgreSQL refuses to run as root: a user without rights, or the one of this process. */
const unprivileged = () => {
  if (process.getuid?.() !== 0) return {}
  const idOf = (flag: string) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout)
  return { uid: idOf('-u'), gid: idOf('-g') }
}

/** A PostgreSQL of its own, on a free port of the loopback, in a temporary folder; user `svc`, password `secret`. */
export async function startPostgres(certificate: Certificate): Promise<TestServer> {
  const folder = await mkdtemp('/var/tmp/svc-postgres-')
  const user = unprivileged()
  const data = join(folder, 'data')
  const password = join(folder, 'password')
  await writeFile(password, 'secret')
  if (user.uid !== undefined) for (const path of [folder, password]) await chown(path, user.uid, user.gid!)
  const args = ['-D', data, '-U', 'svc', '--auth=scram-sha-256', `--pwfile=${password}`, '--no-sync', '--no-locale', '-E', 'UTF8']
  const made = spawnSync(programPath('initdb')!, args, { ...user, encoding: 'utf8', cwd: folder })
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  for (const name of ['cert', 'key'] as const) {
    const path = join(data, `server.${name === 'cert' ? 'crt' : 'key'}`)
    await writeFile(path, certificate[name], { mode: 0o600 })
    if (user.uid !== undefined) await chown(path, user.uid, user.gid!)
  }
  const port = await freePort()
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`, 'ssl=on', 'fsync=off']
  const child = spawn(programPath('postgres')!, ['-D', data, ...settings.flatMap(setting => ['-c', setting])], {
    ...user,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  await said(child, /ready to accept connections/, 'stderr')
  return { port, [Symbol.asyncDispose]: () => ended(child, folder, 'SIGINT') }
}

/** A Redis of its own, on a free port of the loopback. */
export async function startRedis(): Promise<TestServer> {
  const folder = await mkdtemp('/var/tmp/svc-redis-')
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
  const child = spawn(programPath('redis-server')!, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  await said(child, /Ready to accept connections/i, 'stdout')
  return { port, [Symbol.asyncDispose]: () => ended(child, folder, 'SIGTERM') }
}

async function said(child: ChildProcess, what: RegExp, where: 'stdout' | 'stderr'): Promise<void> {
  let text = ''
  for await (const chunk of child[where]!) {
    text += String(chunk)
    if (!what.test(text)) continue
    child[where]!.resume()
    return
  }
  throw new Error(`the server ended: ${text}`)
}

async function ended(child: ChildProcess, folder: string, signal: NodeJS.Signals): Promise<void> {
  const exit = once(child, 'exit')
  child.kill(signal)
  await exit
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
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

export const startTls = ({ cert, key }: Certificate) =>
  serving(
    createTlsServer({ cert, key }, socket => {
      socket.on('error', () => {})
      socket.pipe(socket)
    })
  )

export const startHttp = () => serving(createHttpServer((_, answer) => answer.end('over HTTP')))

export const startHttps = ({ cert, key }: Certificate) =>
  serving(createHttpsServer({ cert, key }, (_, answer) => answer.end('over HTTPS')))

export const startHttp2 = ({ cert, key }: Certificate) =>
  serving(createSecureServer({ cert, key }, (_, answer) => answer.end('over HTTP/2')))

/** A WebSocket server behind TLS that answers with what it is sent. */
export function startWebSocket({ cert, key }: Certificate): Promise<TestServer> {
  const server = createHttpsServer({ cert, key })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket: { on(event: string, heard: (data: unknown) => void): void; send(data: unknown): void }) =>
    socket.on('message', data => socket.send(data))
  )
  return serving(server, () => sockets.close())
}

/** An SMTP server with STARTTLS; `mails` are what it took. */
export async function startSmtp({ cert, key }: Certificate): Promise<TestServer & { readonly mails: readonly string[] }> {
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
