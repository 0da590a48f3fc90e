import { createServer as createNodeServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { HookCallers, Log, SlotView } from '@svc/core'
import type { AuthScheme, Http, HttpHooks, Mount, Route } from '@svc/core/contracts'
import Koa from 'koa'
import { answersFirst, createMalformed, createRefusal } from './refusal.ts'
import { requestOf, sendReply } from './answer.ts'
import type { ServerConfig } from './config.ts'
import { errorCodes, explain, explainMalformed, explainThrown, methodNotAllowed } from './errors.ts'
import { createExchange, type Exchange, type Life } from './exchange.ts'
import { createGates } from './gates.ts'
import { createJournal } from './journal.ts'
import { createListener, type Listener } from './listener.ts'
import { createRouting } from './routing.ts'
import { sendStream } from './stream.ts'

/** What the server stands on. */
export interface ServerParts {
  readonly config: ServerConfig
  readonly routes: SlotView<Route>
  readonly mounts: SlotView<Mount>
  readonly schemes: SlotView<AuthScheme>
  readonly hooks: HookCallers<HttpHooks>
  readonly log: Log
}

/** The server: the service that others see, and its life. */
export interface Server extends Listener {
  readonly service: Http
}

/** Makes the HTTP server; `listen` opens its socket. */
export function createServer(parts: ServerParts): Server {
  const { config, log } = parts
  const life: Life = { draining: false, stallMs: config.stall_timeout_ms }
  const journal = createJournal(log, parts.hooks)
  const gates = createGates({ config, journal, routing: createRouting(parts.routes, parts.mounts, log) })
  const refuse = createRefusal(log)
  const limits = { heartbeatMs: config.heartbeat_ms, stallMs: config.stall_timeout_ms }

  const walk = async (x: Exchange) => {
    try {
      for (const gate of gates) {
        const passed = gate(x)
        const reply = passed instanceof Promise ? await passed : passed
        if (reply) return sendReply(x, reply)
      }
      if (x.mount) return await handOver(x, x.mount)
      const { route } = x.route!
      if (!route.stream) return sendReply(x, await route.handle!(requestOf(x), x.use))
      if (x.method === 'HEAD') return sendReply(x, { status: 200, text: '' })
      await sendStream(x, route.stream(requestOf(x), x.use), route.streams ?? 'text/plain; charset=utf-8', limits)
    } catch (error) {
      refuse(x, error)
    }
  }

  const listener = createListener({
    config,
    life,
    log,
    schemes: parts.schemes,
    server: createNodeServer(optionsOf(config)),
  })
  const handle = koaHandler((req, res) => listener.running(walk(createExchange(req, res, life))), log)
  listener.server.on('request', handle).on('checkExpectation', handle)
  const malformed = createMalformed(log)
  listener.server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!socket.writable || error.code === 'ECONNRESET') socket.destroy()
    else if (!answersFirst(socket)) malformed(explainMalformed(error.code), socket)
  })
  listener.server.on('connect', (_req, socket: Socket) => malformed(explainThrown(methodNotAllowed('CONNECT', []), ''), socket))
  const service: Http = {
    address: async () => listener.address(),
    figures: async () => journal.figures(),
    explain: async (error, use) => refuse.told(error, explain(error, use.requestId), use.requestId),
    codes: async () => errorCodes,
  }
  return { ...listener, service }
}

/** Gives the raw request away: body and answer are the mount's. */
async function handOver({ req, res, headers, life, use }: Exchange, mount: Mount): Promise<void> {
  for (let at = 0; at < headers.length; at += 2) res.setHeader(headers[at]!, headers[at + 1]!)
  if (life.draining) res.setHeader('Connection', 'close')
  await mount.handle(req, res, use)
}

const optionsOf = (config: ServerConfig) => ({
  headersTimeout: config.headers_timeout_ms,
  requestTimeout: config.request_timeout_ms,
  keepAliveTimeout: config.keep_alive_ms,
  connectionsCheckingInterval: Math.min(5_000, config.headers_timeout_ms),
  joinDuplicateHeaders: true, // else Node drops the second of two, and two that contradict each other look like one
  requireHostHeader: false, // the gate `host` asks for it: so the refusal is an error record
})

/** Koa takes requests and watches their ends; answers are written without its body handling, which would double a request's cost. */
function koaHandler(serve: (req: IncomingMessage, res: ServerResponse) => Promise<void>, log: Log) {
  const app = new Koa()
  app.on('error', (err: unknown) => log.debug({ err }, 'a connection broke'))
  app.use(ctx => {
    ctx.respond = false
    return serve(ctx.req, ctx.res)
  })
  return app.callback()
}
