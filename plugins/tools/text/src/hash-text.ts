import { createHash } from 'node:crypto'
import type { Tool } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { notWellFormed } from './errors.ts'
import { textOf, textTool } from './text-tool.ts'

const ALGORITHMS = ['sha256', 'sha384', 'sha512', 'sha3-256', 'sha3-512', 'sha1', 'md5'] as const

interface Arguments {
  readonly text: string
  readonly algorithm?: (typeof ALGORITHMS)[number]
  readonly encoding?: 'hex' | 'base64'
}

/** Makes `hash_text`. */
export function createHashText(): Tool {
  return textTool<Arguments>({
    description: 'Hashes a text (its UTF-8 bytes). For comparing and naming; md5 and sha1 are not safe against forgers.',
    parameters: objectOf(
      {
        text: textOf('the text'),
        algorithm: { enum: ALGORITHMS, description: 'default sha256' },
        encoding: { enum: ['hex', 'base64'], description: 'default hex' },
      },
      ['algorithm', 'encoding']
    ),
    result: objectOf({
      hash: { type: 'string' },
      algorithm: { enum: ALGORITHMS },
      bytes: { type: 'integer', description: 'how many bytes the text has' },
    }),
    async work({ text, algorithm = 'sha256', encoding = 'hex' }) {
      if (!text.isWellFormed()) throw notWellFormed()
      const hash = createHash(algorithm).update(text).digest(encoding)
      return { data: { hash, algorithm, bytes: Buffer.byteLength(text) }, text: hash }
    },
  })
}
