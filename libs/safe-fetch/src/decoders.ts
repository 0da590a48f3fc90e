import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'

const ZSTD = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

/** Returns the decompressor of an encoding; undefined for an unknown one. `first` is the first chunk of the body. */
export function decoderOf(name: string, first: Uint8Array): Transform | undefined {
  if (name === 'gzip' || name === 'x-gzip') return createGunzip()
  if (name === 'br') return createBrotliDecompress()
  if (name === 'zstd') return createZstdDecompress(ZSTD)
  // many servers omit the zlib wrapper
  if (name === 'deflate') return (first[0]! & 15) === 8 ? createInflate() : createInflateRaw()
  return undefined
}
