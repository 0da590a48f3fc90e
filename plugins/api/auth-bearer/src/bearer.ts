import type { Log, CallContext } from '@svc/core'
import { type AuthScheme, CREDENTIAL_HEADERS } from '@svc/core/contracts'
import { credentialIn } from '@svc/plugin-kit'
import { LRUCache } from 'lru-cache'
import { tokenRefused } from './errors.ts'
import { digestOf, isLikeToken, isToken, FRESH_MS, type StoredToken, type AccessTokens } from './tokens.ts'

interface BearerOptions {
  readonly tokens: AccessTokens
  readonly log: Log
  /** The context for work outside a request. */
  readonly lasting: CallContext
}

/** A token that was read recently. */
interface CachedToken {
  readonly stored: StoredToken
  /** `performance.now()` before the token was read. */
  readonly readAt: number
  /** `performance.now()` when its last use was stored. */
  notedAt: number
}

/** Maximum tokens in the cache. */
const MOST_KNOWN = 10_000
const NOTE_MS = 60_000

/** Creates the scheme for tokens of svc. It reads an unknown token from the store, so that a new token works at once, and caches it for half a second. */
export function createBearer({ tokens, log, lasting }: BearerOptions): AuthScheme {
  // `max` would allocate all entries at startup; `maxSize` grows with the content
  const known = new LRUCache<string, CachedToken>({ maxSize: MOST_KNOWN, sizeCalculation: () => 1 })
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
    const stored = await tokens.find(digest, ctx)
    const notedAt = known.get(digest)?.notedAt ?? Number.NEGATIVE_INFINITY
    known.delete(digest)
    if (!stored) return undefined
    const cached = { stored, readAt, notedAt }
    // the token can have been revoked since the read
    if (before === forgotten) known.set(digest, cached)
    return cached
  }
  const note = (cached: CachedToken) => {
    if (performance.now() - cached.notedAt < NOTE_MS) return
    cached.notedAt = performance.now()
    tokens.note(cached.stored, lasting).catch((err: unknown) => log.debug({ err }, 'failed to store the last use of a token'))
  }
  const forget = () => {
    forgotten++
    known.clear()
  }
  return {
    headers: CREDENTIAL_HEADERS.names,
    challenge: 'Bearer realm="svc"',
    shown: { type: 'http', scheme: 'bearer', description: 'A token of `svc tokens create`. It has scopes.' },
    prepare: open,
    async authenticate({ headers }, ctx) {
      const token = credentialIn(headers)
      if (token === undefined || !isLikeToken(token)) return undefined
      ctx.signal.throwIfAborted()
      if (!isToken(token)) throw tokenRefused()
      const digest = digestOf(token)
      const last = known.get(digest)
      const cached = last && performance.now() - last.readAt < FRESH_MS ? last : await read(digest, ctx)
      if (!cached || Date.parse(cached.stored.record.expires) <= Date.now()) throw tokenRefused()
      note(cached)
      const { name, scopes, expires } = cached.stored.record
      return { id: `token:${name}`, scopes, expires: Date.parse(expires) }
    },
    async *changes(ctx) {
      await open()
      yield* forgetting(tokens.revocations(ctx), forget)
    },
  }
}

/** Yields once at the start and for each revocation, after calling `forget`. */
async function* forgetting(revocations: AsyncIterable<null>, forget: () => void): AsyncGenerator<null> {
  const iterator = revocations[Symbol.asyncIterator]()
  for (;;) {
    // `next` before `forget`, so that no revocation between the two is lost
    const next = iterator.next()
    next.catch(() => {}) // a rejection is reported by the `await` below, unless the consumer stops
    forget()
    yield null
    if ((await next).done) return
  }
}
