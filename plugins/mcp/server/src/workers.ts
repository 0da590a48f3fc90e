import { codeOf, isTree, type CallContext } from '@svc/core'
import type { Json, PeerAnswer, Peers } from '@svc/core/contracts'
import { sessionUnknown } from './faults.ts'
import type { HttpAnswer, HttpMessage } from './message.ts'

/** Under which the workers of a server ask each other. */
const TOPIC = 'mcp-server.session'

/** A request on its way to the worker that has its session. */
export interface Forwarded {
  /** The address it came to. */
  readonly path: string
  readonly message: HttpMessage
}

/** The workers of this server as far as sessions care: the name of a session begins with that of its worker. */
export interface Workers {
  /** A new session's name. */
  name(ctx: CallContext): Promise<string>
  /** Which other worker has a session, by its name; `undefined` where this one would have it. */
  elsewhere(session: string | undefined, ctx: CallContext): string | undefined | Promise<string | undefined>
  /** What that worker answers; `undefined` where it has ended. */
  ask(worker: string, forwarded: Forwarded, ctx: CallContext): Promise<HttpAnswer | undefined>
}

export function createWorkers(peers: Peers | undefined): Workers {
  // what its sessions' names begin with, once this worker knows its own
  let prefix: string | undefined
  const ownPrefix = async (ctx: CallContext) =>
    (prefix ??= peers ? `${Buffer.from(await peers.self(ctx)).toString('base64url')}.` : '')
  const other = (session: string, own: string) => {
    const dot = session.indexOf('.')
    return dot === -1 || session.startsWith(own) ? undefined : Buffer.from(session.slice(0, dot), 'base64url').toString()
  }
  return {
    name: async ctx => (await ownPrefix(ctx)) + crypto.randomUUID(),
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

/** What goes before the items of an answer's body, or with the whole of it. */
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

/** A stream whose worker ends, ends. */
async function* textsOf(items: AsyncIterator<Json>): AsyncGenerator<string> {
  try {
    for (let next = await items.next(); !next.done; next = await items.next()) yield next.value as string
  } catch (error) {
    if (!isGone(error)) throw error
  } finally {
    await items.return?.()
  }
}

/** Answers what other workers ask about sessions of this one. */
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
