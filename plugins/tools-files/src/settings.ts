import { schema } from '@svc/core'

/** The section `tools.files`. */
export interface FilesConfig {
  /** Folders the tools may look into; relative ones from the working directory. */
  roots: string[]
  /** The most bytes of a file that one call returns. */
  max_bytes: number
  /** The most entries of a directory that one call returns. */
  max_entries: number
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
      description: 'Entries of a folder that one call lists.',
    },
  },
  additionalProperties: false,
})
