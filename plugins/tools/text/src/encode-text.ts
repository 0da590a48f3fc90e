import { createHash } from 'node:crypto'
import type { Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { base64Binary, base64Invalid, notWellFormed } from './errors.ts'
import { textOf, textTool } from './text-tool.ts'

const ALGORITHMS = ['sha256', 'sha384', 'sha512', 'sha3-256', 'sha3-512', 'sha1', 'md5'] as const

interface Arguments {
  readonly text: string
  readonly algorithm?: (typeof ALGORITHMS)[number]
  readonly encoding?: 'hex' | 'base64'
}

/** Creates `hash_text`. */
export function createHashText(): Tool {
  return textTool<Arguments>({
    description: 'Hashes the UTF-8 bytes of a text, for comparisons and names. md5 and sha1 do not protect against forgery.',
    parameters: objectOf(
      {
        text: textOf('text'),
        algorithm: { enum: ALGORITHMS, description: 'default sha256' },
        encoding: { enum: ['hex', 'base64'], description: 'default hex' },
      },
      ['algorithm', 'encoding']
    ),
    result: objectOf({
      hash: { type: 'string' },
      algorithm: { enum: ALGORITHMS },
      bytes: { type: 'integer', description: 'size of the text in bytes' },
    }),
    async work({ text, algorithm = 'sha256', encoding = 'hex' }) {
      if (!text.isWellFormed()) throw notWellFormed()
      const hash = createHash(algorithm).update(text).digest(encoding)
      return { data: { hash, algorithm, bytes: Buffer.byteLength(text) }, text: hash }
    },
  })
}

/** Creates `encode_base64`. */
export function createEncodeBase64(): Tool {
  return textTool<{ text: string; url_safe?: boolean }>({
    description: 'Encodes the UTF-8 bytes of a text as base64.',
    parameters: objectOf(
      {
        text: textOf('text'),
        url_safe: { type: 'boolean', description: 'whether to use the URL alphabet without padding; default false' },
      },
      ['url_safe']
    ),
    result: objectOf({ base64: { type: 'string' } }),
    async work({ text, url_safe = false }) {
      if (!text.isWellFormed()) throw notWellFormed()
      const base64 = Buffer.from(text).toString(url_safe ? 'base64url' : 'base64')
      return { data: { base64 }, text: base64 }
    },
  })
}

/** Creates `decode_base64`, which accepts both alphabets, with or without padding. */
export function createDecodeBase64(): Tool {
  return textTool<{ base64: string }>({
    description: 'Decodes base64 (also with the URL alphabet) to text. Rejects invalid base64 and data that is not UTF-8 text.',
    parameters: objectOf({ base64: textOf('base64 without line breaks') }),
    result: objectOf({ text: { type: 'string' }, bytes: { type: 'integer' } }),
    async work({ base64 }) {
      const bytes = bytesOf(base64)
      const text = decoded(bytes)
      return { data: { text, bytes: bytes.length }, text }
    },
  })
}

const HEAD = 8
const PADDING = /={0,2}$/

function bytesOf(base64: string): Buffer {
  const bare = base64.replace(PADDING, '')
  const odd = /[^A-Za-z0-9+/_-]/.exec(bare)
  if (odd) throw base64Invalid(`it contains ${JSON.stringify(odd[0])} at position ${odd.index}`)
  if (/[+/]/.test(bare) && /[_-]/.test(bare)) throw base64Invalid('it mixes the two alphabets')
  if (bare.length % 4 === 1 || (bare !== base64 && base64.length % 4 !== 0))
    throw base64Invalid(`its length of ${base64.length} characters is impossible`)
  const bytes = Buffer.from(bare, 'base64url')
  // leftover bits mean truncated or hidden data
  if (bytes.toString('base64url') !== bare.replaceAll('+', '-').replaceAll('/', '_'))
    throw base64Invalid('its last character has leftover bits, so it was cut or changed')
  return bytes
}

function decoded(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw base64Binary(bytes.length, bytes.subarray(0, HEAD).toString('hex'))
  }
}
