import type { Log, CallContext } from '@svc/core'
import type { AuthScheme } from '@svc/core/contracts'
import { tokenRefused } from './errors.ts'
import { digestOf, isToken, tokenIn } from './token.ts'
import { type FoundToken, FRESH_MS, type Tokens } from './tokens.ts'

export interface BearerParts {
  readonly tokens: Tokens
  readonly log: Log
  /** The circumstances of work that no request waits for. */
  readonly lasting: CallContext
}

/** A token that was found lately. */
interface CachedToken {
  readonly found: FoundToken
  /** `performance.now()` before it was read. */
  readonly readAt: number
  /** `performance.now()` when its use was last noted. */
  notedAt: number
}

/** Tokens kept in mind; the one read longest ago goes first. */
const MOST_KNOWN = 10_000
const NOTE_MS = 60_000

/** Knows the holders of our tokens. A token is looked up when it comes, so that a new one works at once; what was found counts for half a second. */
export function createBearer({ tokens, log, lasting }: BearerParts): AuthScheme {
  const known = new Map<string, CachedToken>()
  let opened: Promise<void> | undefined
  let forgotten = 0

  const open = () => {
    opened ??= tokens.open(lasting).catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }
  const read = async (digest: string, ctx: CallContext): Promise<CachedToken | undefined> => {
    const readAt = performance.now()
    const before = forgotten
    await open()
    const found = await tokens.find(digest, ctx)
    const notedAt = known.get(digest)?.notedAt ?? Number.NEGATIVE_INFINITY
    known.delete(digest)
    if (!found) return undefined
    if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value ?? '')
    const one = { found, readAt, notedAt }
    // it may have gone meanwhile
    if (before === forgotten) known.set(digest, one)
    return one
  }
  const note = (one: CachedToken) => {
    if (performance.now() - one.notedAt < NOTE_MS) return
    one.notedAt = performance.now()
    tokens.note(one.found, lasting).catch((err: unknown) => log.debug({ err }, 'the use of a token could not be noted'))
  }
  const forget = () => {
    forgotten++
    known.clear()
  }
  return {
    headers: ['authorization'],
    challenge: 'Bearer realm="svc"',
    shown: { type: 'http', scheme: 'bearer', description: 'A token of `svc tokens create`. It has scopes.' },
    prepare: open,
    async authenticate({ headers }, ctx) {
      const token = tokenIn(headers.authorization)
      if (token === undefined) return undefined
      ctx.signal.throwIfAborted()
      if (!isToken(token)) throw tokenRefused()
      const digest = digestOf(token)
      const last = known.get(digest)
      const one = last && performance.now() - last.readAt < FRESH_MS ? last : await read(digest, ctx)
      if (!one || Date.parse(one.found.record.expires) <= Date.now()) throw tokenRefused()
      note(one)
      const { name, scopes, expires } = one.found.record
      return { id: `token:${name}`, scopes, expires: Date.parse(expires) }
    },
    async *changes(ctx) {
      await open()
      yield* forgetting(tokens.gone(ctx), forget)
    },
  }
}

/** The same news, each after `forget`, and one for the beginning. */
async function* forgetting(news: AsyncIterable<null>, forget: () => void): AsyncGenerator<null> {
  const gone = news[Symbol.asyncIterator]()
  for (;;) {
    // asked for before what was read is forgotten, so that no token goes between the two
    const next = gone.next()
    next.catch(() => {}) // it is awaited below, unless the consumer stops
    forget()
    yield null
    if ((await next).done) return
  }
}
