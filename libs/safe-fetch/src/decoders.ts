import type { Transform } from 'node:stream'
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib'

const ZSTD = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

/** What unpacks a body of this encoding; `first` is its first piece. Absent for an encoding that is not known. */
export function decoderOf(name: string, first: Uint8Array): Transform | undefined {
  if (name === 'gzip' || name === 'x-gzip') return createGunzip()
  if (name === 'br') return createBrotliDecompress()
  if (name === 'zstd') return createZstdDecompress(ZSTD)
  // half of the servers leave the wrapper of zlib out
  if (name === 'deflate') return (first[0]! & 15) === 8 ? createInflate() : createInflateRaw()
  return undefined
}
