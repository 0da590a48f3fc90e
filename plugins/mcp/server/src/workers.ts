import { type CallContext, codeOf, isTree } from '@svc/core'
import type { Json, PeerAnswer, Peers } from '@svc/core/contracts'
import { type HttpAnswer, type HttpMessage, sessionUnknown } from './messages.ts'

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
