import { pipeline, Readable } from 'node:stream'
import { codeOf } from '@svc/core'
import { bodyTooLarge, encodingUnknown } from './errors.ts'

/** Bytes of a response that was read. */
export interface BodyRead {
  readonly bytes: Uint8Array
  /** True where it was longer than the limits let it be. */
  readonly cut: boolean
}

/** Reads a body whole. One that is too large is cut where `cut` says so, else BODY_TOO_LARGE is thrown. */
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

/** What a body may be compressed with, as the request says it. */
export const ACCEPTED = 'gzip, deflate, br, zstd'

/** How a body comes, and how much of it is read. */
interface BodyForm {
  readonly url: URL
  /** The header Content-Encoding. */
  readonly encoding: string | undefined
  readonly wireBytes: number
  readonly bodyBytes: number
}

/** A body as it is to be read, decompressed. It ends with what fits, then throws BODY_TOO_LARGE; BODY_INVALID for an unknown encoding. */
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
  // the one who reads it is told of what fails
  return pipeline(all, decoder, () => {})
}

/** Looks at the first piece of a body. */
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
