import { schema } from '@svc/core'

/** The section `tools.git`. */
export interface GitConfig {
  /** Folders whose repositories may be used; without them those of the tools for files. */
  roots?: string[]
  /** Milliseconds that one git command may take. */
  timeout_ms: number
  /** The most bytes of a difference or a file that one call returns. */
  max_bytes: number
  /** The most files or commits that one call returns. */
  max_entries: number
  /** Whether git_commit may run what the repository brings: its hooks and filters. */
  trust_repositories: boolean
  /** Who commits, where git itself has not been told. */
  author?: { name: string; email: string }
}

export const gitConfig = schema<GitConfig>({
  type: 'object',
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      description: 'Folders whose repositories may be used; without it those of tools.files.roots.',
    },
    timeout_ms: {
      type: 'integer',
      minimum: 100,
      maximum: 600_000,
      default: 20_000,
      description: 'Milliseconds that one git command may take.',
    },
    max_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 8_388_608,
      default: 262_144,
      description: 'Bytes of a difference or a file that one call returns.',
    },
    max_entries: {
      type: 'integer',
      minimum: 1,
      maximum: 10_000,
      default: 1000,
      description: 'Files that one call returns.',
    },
    trust_repositories: {
      type: 'boolean',
      default: false,
      description: 'Lets git_commit run what a repository brings: its hooks and filters.',
    },
    author: {
      type: 'object',
      properties: { name: { type: 'string', minLength: 1 }, email: { type: 'string', minLength: 1 } },
      required: ['name', 'email'],
      additionalProperties: false,
      description: 'Who commits.',
    },
  },
  additionalProperties: false,
})
