import { schema } from '@svc/core'

/** The section `tools.search`. */
export interface FileSearchConfig {
  /** Folders to search; default: those of the file tools. */
  roots?: string[]
  /** Maximum lines that a call finds. */
  max_matches: number
  /** Maximum files and folders that a call reads. */
  max_entries: number
  /** Larger files are skipped. */
  max_file_bytes: number
  /** Maximum bytes that a call reads. */
  max_bytes: number
  /** Time limit of a call in milliseconds. */
  timeout_ms: number
}

const integer = (minimum: number, maximum: number, fallback: number, description: string) =>
  ({ type: 'integer', minimum, maximum, default: fallback, description }) as const

export const searchConfig = schema<FileSearchConfig>({
  type: 'object',
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      description: 'Folders to search; default: tools.files.roots.',
    },
    max_matches: integer(1, 10_000, 200, 'Maximum lines that a call finds.'),
    max_entries: integer(1, 10_000_000, 200_000, 'Maximum files and folders that a call reads.'),
    max_file_bytes: integer(1024, 67_108_864, 4_194_304, 'Maximum size of a file in bytes; larger files are skipped.'),
    max_bytes: integer(1024, 17_179_869_184, 536_870_912, 'Maximum bytes that a call reads.'),
    timeout_ms: integer(
      100,
      600_000,
      20_000,
      'Time limit of a call in milliseconds; after it, the call returns the matches so far.'
    ),
  },
  additionalProperties: false,
})
