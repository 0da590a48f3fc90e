import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { svcError } from '@svc/core'
import type { BodyDigest, BodyDigestAlgorithm } from '@svc/core/contracts'
import type { Context } from './context.ts'
import { payloadTooLarge } from './errors.ts'

/** Reads the body of a request whose credential is not verified yet, and returns its digest. The route can still read the body. */
export type DigestBody = (ctx: Context, algorithm: BodyDigestAlgorithm) => Promise<BodyDigest>

/** The algorithms that a scheme can ask for. */
export const DIGESTS: readonly unknown[] = ['sha256', 'sha384', 'sha512'] satisfies readonly BodyDigestAlgorithm[]

/** Limit of the unverified bodies of all requests together, because any client can send one. */
const MOST_BYTES = 64 * 1024 * 1024

/**
 * `limit`: maximum bytes of a body before its credential is verified. Throws PAYLOAD_TOO_LARGE, and UNAVAILABLE while too many
 * bodies wait for their verification.
 */
export function createDigestBody(limit: number, most: number = MOST_BYTES): DigestBody {
  let held = 0
  const reserve = (bytes: number) => {
    if (held + bytes > most) throw tooManyUnverified()
    held += bytes
  }
  return async (ctx, algorithm) => {
    const { req, res, state } = ctx
    const known = state.bodyDigests.get(algorithm)
    if (known !== undefined) return { algorithm, hex: known }
    if (state.bodyDigests.size === 0) res.once('finish', () => req.resume()) // Node skips an unread body only if nothing was read
    const most = Math.min(limit, state.route?.route.bodyLimit ?? limit)
    let mine = 0
    const take = (bytes: number) => {
      reserve(bytes)
      mine += bytes
    }
    try {
      const hex = hash(algorithm, hasBody(req) ? await peekBody(req, most, take) : new Uint8Array(), 'hex')
      state.bodyDigests = new Map([...state.bodyDigests, [algorithm, hex]])
      return { algorithm, hex }
    } finally {
      held -= mine
    }
  }
}

/** Memory of a chunk beside its content, so that many tiny chunks count too. */
const CHUNK_BYTES = 512

const hasBody = ({ headers, readableEnded }: IncomingMessage) =>
  !readableEnded && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)

/** Reads the whole body and puts it back, so that the next reader gets it unchanged. `take` is called before bytes are kept. */
function peekBody(req: IncomingMessage, limit: number, take: (bytes: number) => void): Promise<Uint8Array> {
  if (Number(req.headers['content-length'] ?? 0) > limit) throw payloadTooLarge(limit)
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const end = () => req.off('readable', read).off('end', empty).off('error', fail).off('close', fail)
    const empty = () => {
      end()
      resolve(new Uint8Array())
    }
    const fail = (error: unknown = disconnected()) => {
      end()
      req.resume()
      reject(error as Error)
    }
    const readAll = () => {
      for (let chunk = req.read() as Buffer | null; chunk !== null; chunk = req.read() as Buffer | null) {
        size += chunk.length
        if (size > limit) throw payloadTooLarge(limit)
        take(chunk.length + CHUNK_BYTES)
        chunks.push(chunk)
      }
    }
    const read = () => {
      try {
        readAll()
      } catch (error) {
        fail(error)
        return
      }
      if (!req.complete || size === 0) return // an empty stream ends on its own
      end()
      const bytes = Buffer.concat(chunks)
      req.unshift(bytes) // in the same tick as the last `read`, before the stream ends
      resolve(bytes)
    }
    req.on('readable', read).once('end', empty).once('error', fail).once('close', fail)
  })
}

const disconnected = () => svcError('CANCELLED', 'the client disconnected before it had sent the body')

const RETRY_MS = 1_000

const tooManyUnverified = () =>
  svcError('UNAVAILABLE', 'the server is reading too many bodies of requests whose signature it must check; try again later', {
    details: { retryAfterMs: RETRY_MS },
  })
