import { schema } from '@svc/core'

/** The section `tools.files`. */
export interface FilesConfig {
  /** Folders the tools may look into; relative ones from the working directory. */
  roots: string[]
  /** The most bytes of a file that one call returns. */
  max_bytes: number
  /** The most entries of a directory that one call returns, files that one search finds, or things that one call deletes. */
  max_entries: number
  /** The most bytes of a file that is written or edited. */
  max_write_bytes: number
  /** The most files and folders that one search looks at. */
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
      description: 'Folders that the tools may see.',
    },
    max_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 8_388_608,
      default: 262_144,
      description: 'Bytes of a file that one call reads.',
    },
    max_entries: {
      type: 'integer',
      minimum: 1,
      maximum: 100_000,
      default: 1000,
      description: 'Entries of a folder that one call lists, files that it finds, or things that it deletes with a folder.',
    },
    max_write_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 67_108_864,
      default: 4_194_304,
      description: 'Bytes of a file that is written or edited.',
    },
    max_search_entries: {
      type: 'integer',
      minimum: 1,
      maximum: 10_000_000,
      default: 200_000,
      description: 'Files and folders that one search by name looks at.',
    },
  },
  additionalProperties: false,
})
