import { schema } from '@svc/core'

/** The section `tools.search`. */
export interface SearchConfig {
  /** Folders to search in; without them those of the other tools for files. */
  roots?: string[]
  /** The most lines that one call finds. */
  max_matches: number
  /** The most files and folders that one call looks at. */
  max_entries: number
  /** Files with more bytes are passed over. */
  max_file_bytes: number
  /** The most bytes that one call reads. */
  max_bytes: number
  /** The most milliseconds that one call searches. */
  timeout_ms: number
}

const integer = (minimum: number, maximum: number, fallback: number, description: string) =>
  ({ type: 'integer', minimum, maximum, default: fallback, description }) as const

export const searchConfig = schema<SearchConfig>({
  type: 'object',
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      description: 'Folders that are searched; without it those of tools.files.roots.',
    },
    max_matches: integer(1, 10_000, 200, 'Lines that one call finds.'),
    max_entries: integer(1, 10_000_000, 200_000, 'Files and folders that one call looks at.'),
    max_file_bytes: integer(1024, 67_108_864, 4_194_304, 'A file with more bytes is passed over.'),
    max_bytes: integer(1024, 17_179_869_184, 536_870_912, 'Bytes that one call reads.'),
    timeout_ms: integer(100, 600_000, 20_000, 'Milliseconds that one call searches: it answers with what it found by then.'),
  },
  additionalProperties: false,
})
