import { schema } from '@svc/core'

/** The section `tools.git`. */
export interface GitConfig {
  /** Folders whose repositories can be used; default: those of the file tools. */
  roots?: string[]
  /** Time limit of a git command in milliseconds. */
  timeout_ms: number
  /** Maximum bytes of a diff or file that a call returns. */
  max_bytes: number
  /** Maximum files that a call returns. */
  max_entries: number
  /** Whether git_commit can run hooks and filters of repositories. */
  trust_repositories: boolean
  /** Author of commits, if git has none. */
  author?: { name: string; email: string }
}

export const gitConfig = schema<GitConfig>({
  type: 'object',
  properties: {
    roots: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      description: 'Folders whose repositories can be used; default: tools.files.roots.',
    },
    timeout_ms: {
      type: 'integer',
      minimum: 100,
      maximum: 600_000,
      default: 20_000,
      description: 'Time limit of a git command in milliseconds.',
    },
    max_bytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 8_388_608,
      default: 262_144,
      description: 'Maximum bytes of a diff or file that a call returns.',
    },
    max_entries: {
      type: 'integer',
      minimum: 1,
      maximum: 10_000,
      default: 1000,
      description: 'Maximum number of files that a call returns.',
    },
    trust_repositories: {
      type: 'boolean',
      default: false,
      description: 'Let git_commit run hooks and filters of repositories.',
    },
    author: {
      type: 'object',
      properties: { name: { type: 'string', minLength: 1 }, email: { type: 'string', minLength: 1 } },
      required: ['name', 'email'],
      additionalProperties: false,
      description: 'Author of commits, if git has none.',
    },
  },
  additionalProperties: false,
})
