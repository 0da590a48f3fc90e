import { schema, type SvcError, svcError } from '@svc/core'
import { bytesOf } from '@svc/plugin-kit'

/** The section `sandbox.quickjs`. */
export interface QuickjsConfig {
  /** Maximum concurrent threads. */
  workers: number
  /** Maximum seconds of a run. */
  timeout: number
  /** Maximum memory of a run. */
  memory_limit: string
  /** Addresses, networks and names that `fetch` can reach although they are not public. */
  allow: string[]
}

export const quickjsConfig = schema<QuickjsConfig>({
  type: 'object',
  properties: {
    workers: {
      type: 'integer',
      minimum: 1,
      maximum: 64,
      default: 2,
      description: 'Maximum concurrent threads. Each can use the whole memory_limit.',
    },
    timeout: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 3600,
      default: 30,
      description: 'Maximum seconds of one run, including waiting.',
    },
    memory_limit: {
      type: 'string',
      pattern: '^[0-9]+[KMG]?$',
      default: '512M',
      description: 'Maximum memory of one run, including the engine: from 32M to 2G.',
    },
    allow: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description:
        'Addresses, networks and names that fetch can reach although they are not public, if the code may fetch at all.',
    },
  },
  additionalProperties: false,
})

/** The smallest memory that the engine starts with, and the largest that it can address. */
export const LEAST_BYTES = 32 * 1024 ** 2
const MOST_BYTES = 2 * 1024 ** 3

/** Checks values that the schema cannot check. */
export function problemsOf({ memory_limit: memory }: QuickjsConfig): SvcError[] {
  const bytes = bytesOf(memory)
  if (bytes >= LEAST_BYTES && bytes <= MOST_BYTES) return []
  const where = 'sandbox.quickjs.memory_limit'
  return [svcError('CONFIG_INVALID', `${where} must be from 32M to 2G, was "${memory}"`, { where, hint: 'Write 512M' })]
}
