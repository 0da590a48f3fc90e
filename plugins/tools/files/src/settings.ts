import { schema } from '@svc/core'

/** The section `tools.files`. */
export interface FilesConfig {
  /** Folders that the tools can use, relative to the working directory. */
  roots: string[]
  /** Maximum bytes of a file that a call returns. */
  max_bytes: number
  /** Maximum entries that a call lists, finds or deletes. */
  max_entries: number
  /** Maximum size of a written or edited file. */
  max_write_bytes: number
  /** Maximum entries that a search reads. */
  max_search_entries: number
}

export const filesConfig = schema<FilesConfig>({
  type: 'object',
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      default: ['.'],
      description: 'Folders that the tools can use.',
    },
    max_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 8_388_608,
      default: 262_144,
      description: 'Maximum bytes that a call reads from a file.',
    },
    max_entries: {
      type: 'integer',
      minimum: 1,
      maximum: 100_000,
      default: 1000,
      description: 'Maximum entries that a call lists, finds, or deletes with a folder.',
    },
    max_write_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 67_108_864,
      default: 4_194_304,
      description: 'Maximum size of a written or edited file in bytes.',
    },
    max_search_entries: {
      type: 'integer',
      minimum: 1,
      maximum: 10_000_000,
      default: 200_000,
      description: 'Maximum files and folders that a search by name reads.',
    },
  },
  additionalProperties: false,
})
