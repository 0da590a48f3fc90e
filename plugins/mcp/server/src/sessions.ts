import { type CallContext, codeOf, isTree, type Principal } from '@svc/core'
import type { Json, PeerAnswer, Peers } from '@svc/core/contracts'
import { networkOf } from '@svc/plugin-kit'
import {
  type HttpAnswer,
  type HttpMessage,
  methodWrong,
  sessionMissing,
  sessionsFull,
  sessionUnknown,
  unreadable,
} from './messages.ts'
import type { Published } from './published.ts'
import { openSession, type McpSession } from './session.ts'

export interface SessionLimits {
  /** Sessions of one principal in this worker. */
  readonly perPrincipal: number
  /** Sessions in this worker. */
  readonly inAll: number
  /** A session without a request and without an open stream ends after this time. */
  readonly idleMs: number
}

/** The sessions of one path in this worker. */
export interface Sessions {
  /** Answers a request of the legacy era. `id` is the session id of the request. */
  answer(message: HttpMessage, body: unknown, id: string | undefined, ctx: CallContext): Promise<HttpAnswer>
  /** Rejects new event streams, so that clients begin a new session on the next worker. */
  drain(): void
  close(): Promise<void>
}

/** All sessions of this worker, by id. The limits count the sessions of all paths together. */
export type WorkerSessions = Map<string, SessionEntry>

interface SessionsOptions {
  readonly path: string
  readonly all: WorkerSessions
  readonly published: Published
  readonly limits: SessionLimits
  /** Returns the id of a new session. */
  readonly newId: (ctx: CallContext) => Promise<string>
  readonly own: CallContext
}

interface SessionEntry {
  readonly path: string
  readonly session: McpSession
  readonly principal: string
  /** The key of the limit per principal. */
  readonly share: string
}

export function createSessions({ path, all, published, limits, newId, own }: SessionsOptions): Sessions {
  const sweeper = createSweeper(all, limits.idleMs)
  let isDraining = false
  const begin = async (message: HttpMessage, body: unknown, ctx: CallContext) => {
    const share = shareOf(ctx.principal)
    const id = await newId(ctx)
    const onclose = () => void all.delete(id)
    const session = await openSession({ id, published, own, onclose })
    // after the await: sessions that began at the same time count as well
    if (!makeRoom(all, share, limits)) {
      await session.close()
      return sessionsFull()
    }
    all.set(id, { path, session, principal: ctx.principal.id, share })
    sweeper.start()
    const answer = await session.answer(message, body, ctx)
    // no id in the answer: the SDK rejected the request
    if (answer.headers['mcp-session-id'] === undefined) await session.close()
    return answer
  }
  return {
    async answer(message, body, id, ctx) {
      const { method } = message
      if (!['POST', 'GET', 'DELETE'].includes(method)) return methodWrong()
      if (id === undefined) {
        if (method === 'POST' && body === undefined) return unreadable('the body is not valid JSON')
        return isInitialize(body) ? begin(message, body, ctx) : sessionMissing()
      }
      const entry = all.get(id)
      if (entry?.path !== path || entry.principal !== ctx.principal.id) return sessionUnknown()
      if (isDraining && method === 'GET') return sessionUnknown()
      return entry.session.answer(message, body, ctx)
    },
    drain() {
      isDraining = true
    },
    async close() {
      sweeper.stop()
      const here = [...all.values()].filter(entry => entry.path === path)
      await Promise.all(here.map(({ session }) => session.close()))
    },
  }
}

const isInitialize = (body: unknown) => isTree(body) && body.method === 'initialize'

/** Anonymous callers are distinguished by their network. */
const shareOf = ({ id, address }: Principal) => (id === 'anonymous' && address ? `address/${networkOf(address)}` : `id/${id}`)

/** Makes room for one more session. At a limit it ends the session that was idle for longest. Returns false if all are busy. */
function makeRoom(all: ReadonlyMap<string, SessionEntry>, share: string, { perPrincipal, inAll }: SessionLimits): boolean {
  const own = [...all.values()].filter(entry => entry.share === share)
  const candidates = own.length >= perPrincipal ? own : all.size >= inAll ? [...all.values()] : undefined
  if (!candidates) return true
  const idle = candidates.filter(({ session }) => !session.busy).toSorted((a, b) => a.session.touched - b.session.touched)
  void idle[0]?.session.close()
  return idle.length > 0
}

const SWEEP_MS = 60_000

/** Ends sessions that were idle for too long. The timer runs while there are sessions. */
function createSweeper(all: ReadonlyMap<string, SessionEntry>, idleMs: number) {
  let timer: NodeJS.Timeout | undefined
  const stop = () => {
    clearInterval(timer)
    timer = undefined
  }
  const sweep = () => {
    const before = performance.now() - idleMs
    for (const { session } of all.values()) if (!session.busy && session.touched <= before) void session.close()
    if (all.size === 0) stop()
  }
  return {
    start: () => void (timer ??= setInterval(sweep, Math.min(SWEEP_MS, Math.max(1, idleMs / 2)))),
    stop,
  }
}

/** Topic of requests between workers. */
const TOPIC = 'mcp-server.session'

/** A request that is forwarded to the worker of its session. */
export interface Forwarded {
  readonly path: string
  readonly message: HttpMessage
}

/** Finds the worker of a session. The id of a session begins with the id of its worker. */
export interface Workers {
  /** Creates the id of a new session. */
  newSessionId(ctx: CallContext): Promise<string>
  /** Returns the worker of a session, `undefined` if it is this worker. */
  elsewhere(session: string | undefined, ctx: CallContext): string | undefined | Promise<string | undefined>
  /** Returns the answer of another worker, `undefined` if that worker has ended. */
  ask(worker: string, forwarded: Forwarded, ctx: CallContext): Promise<HttpAnswer | undefined>
}

export function createWorkers(peers: Peers | undefined): Workers {
  // prefix of session ids, once this worker knows its own id
  let prefix: string | undefined
  const ownPrefix = async (ctx: CallContext) =>
    (prefix ??= peers ? `${Buffer.from(await peers.self(ctx)).toString('base64url')}.` : '')
  const other = (session: string, own: string) => {
    const dot = session.indexOf('.')
    return dot === -1 || session.startsWith(own) ? undefined : Buffer.from(session.slice(0, dot), 'base64url').toString()
  }
  return {
    newSessionId: async ctx => (await ownPrefix(ctx)) + crypto.randomUUID(),
    elsewhere(session, ctx) {
      if (!peers || session === undefined) return undefined
      return prefix === undefined ? ownPrefix(ctx).then(own => other(session, own)) : other(session, prefix)
    },
    async ask(worker, { path, message }, ctx) {
      const items = peers!.ask(worker, TOPIC, { path, ...message }, ctx)[Symbol.asyncIterator]()
      try {
        const first = await items.next()
        return first.done ? undefined : answerFrom(first.value as unknown as Head, items)
      } catch (error) {
        if (isGone(error)) return undefined
        throw error
      }
    },
  }
}

const isGone = (error: unknown) => ['PEER_GONE', 'PEER_SILENT'].includes(codeOf(error) ?? '')

/** Status, headers and complete body, or status and headers before the chunks of a streamed body. */
interface Head {
  readonly status: number
  readonly headers: HttpAnswer['headers']
  readonly body?: string
}

const answerFrom = ({ status, headers, body }: Head, items: AsyncIterator<Json>): HttpAnswer => ({
  status,
  headers,
  body: body ?? textsOf(items),
})

/** The stream ends when its worker ends. */
async function* textsOf(items: AsyncIterator<Json>): AsyncGenerator<string> {
  try {
    for (let next = await items.next(); !next.done; next = await items.next()) yield next.value as string
  } catch (error) {
    if (!isGone(error)) throw error
  } finally {
    await items.return?.()
  }
}

/** Answers requests that other workers forward to sessions of this worker. */
export const createPeerAnswer = (
  answer: (forwarded: Forwarded, ctx: CallContext) => Promise<HttpAnswer> | undefined
): PeerAnswer => ({
  async *answer(asked, ctx) {
    const forwarded = forwardedOf(asked)
    const { status, headers, body } = (await (forwarded && answer(forwarded, ctx))) ?? sessionUnknown()
    if (typeof body === 'string') return yield { status, headers, body }
    yield { status, headers }
    yield* body
  },
})

function forwardedOf(asked: Json): Forwarded | undefined {
  if (!isTree(asked) || !isTree(asked.headers)) return undefined
  const { path, method, text } = asked
  if (typeof path !== 'string' || typeof method !== 'string' || typeof text !== 'string') return undefined
  return { path, message: { method, text, headers: asked.headers as HttpMessage['headers'] } }
}
