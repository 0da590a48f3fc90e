import { pipeline, Readable } from 'node:stream'
import { codeOf } from '@svc/core'
import { bodyTooLarge, encodingUnknown } from './errors.ts'

/** The body of a response. */
export interface BodyRead {
  readonly bytes: Uint8Array
  /** True if the body was longer than its limit. */
  readonly cut: boolean
}

/** Reads a whole body. With `cut`, truncates a body that is too large; otherwise throws BODY_TOO_LARGE. */
export async function readBody(body: AsyncIterable<Uint8Array>, { cut = false } = {}): Promise<BodyRead> {
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of body) chunks.push(chunk)
  } catch (error) {
    if (!cut || codeOf(error) !== 'BODY_TOO_LARGE') throw error
    return { bytes: Buffer.concat(chunks), cut: true }
  }
  return { bytes: Buffer.concat(chunks), cut: false }
}

/** The supported compressions, for the header Accept-Encoding. */
export const ACCEPTED = 'gzip, deflate, br, zstd'

/** The encoding and the limits of a body. */
interface BodyForm {
  readonly url: URL
  /** The header Content-Encoding. */
  readonly encoding: string | undefined
  readonly wireBytes: number
  readonly bodyBytes: number
}

/** Decompresses a body. A body that is too large yields its first bytes, then throws BODY_TOO_LARGE. Throws BODY_INVALID for an unknown encoding. */
export async function* decoded(raw: Readable, { url, encoding, wireBytes, bodyBytes }: BodyForm): AsyncGenerator<Uint8Array> {
  const packed = encoding !== undefined && !/^\s*(identity)?\s*$/i.test(encoding)
  const wire = packed ? atMost(raw, wireBytes, () => bodyTooLarge(url, wireBytes, true)) : raw
  const plain = packed ? await unpacked(wire, encoding, url) : wire
  yield* atMost(plain, bodyBytes, () => bodyTooLarge(url, bodyBytes, false))
}

async function* atMost(source: AsyncIterable<Uint8Array>, most: number, tooLarge: () => Error): AsyncGenerator<Uint8Array> {
  let left = most
  for await (const chunk of source) {
    if (left > 0) yield chunk.subarray(0, left)
    left -= chunk.length
    if (left < 0) throw tooLarge()
  }
}

async function unpacked(wire: AsyncIterable<Uint8Array>, encoding: string, url: URL): Promise<Readable> {
  const name = encoding.trim().toLowerCase()
  const { first, all } = await peek(wire)
  if (first === undefined) return Readable.from([])
  const { decoderOf } = await import('./decoders.ts')
  const decoder = decoderOf(name, first)
  if (!decoder) throw encodingUnknown(url)
  // the reader of the stream gets the error
  return pipeline(all, decoder, () => {})
}

/** Reads the first chunk of a body without consuming it. */
async function peek(source: AsyncIterable<Uint8Array>) {
  const iterator = source[Symbol.asyncIterator]()
  const { value: first, done } = await iterator.next()
  async function* all() {
    try {
      yield first as Uint8Array
      for (;;) {
        const next = await iterator.next()
        if (next.done) return
        yield next.value
      }
    } finally {
      await iterator.return?.()
    }
  }
  return { first: done ? undefined : first, all }
}
