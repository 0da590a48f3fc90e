import { schema, type SvcError, svcError } from '@svc/core'

/** The section `sandbox.quickjs`. */
export interface QuickjsConfig {
  /** Threads that run code at once. */
  workers: number
  /** Seconds that a run may take, whatever is asked for. */
  timeout: number
  /** Memory that a run may have, whatever is asked for. */
  memory_limit: string
  /** Addresses, networks and names that `fetch` may reach though they are not public. */
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
      description: 'Threads that run code at once; each may take the whole memory_limit.',
    },
    timeout: {
      type: 'number',
      exclusiveMinimum: 0,
      maximum: 3600,
      default: 30,
      description: 'Seconds that one run may take at most, waiting included.',
    },
    memory_limit: {
      type: 'string',
      pattern: '^[0-9]+[KMG]?$',
      default: '512M',
      description: 'Memory that one run may have at most, the engine included: from 32M to 2G.',
    },
    allow: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      default: [],
      description: 'Addresses, networks and names that fetch may reach though they are not public, where code may fetch at all.',
    },
  },
  additionalProperties: false,
})

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }
/** What the engine needs to begin with, and what it can address. */
export const LEAST_BYTES = 32 * 1024 ** 2
const MOST_BYTES = 2 * 1024 ** 3

/** Bytes of a written amount: `512M`. */
export function bytesOf(amount: string): number {
  const [, digits = '', unit = ''] = /^(\d+)([KMG]?)$/.exec(amount) ?? []
  return Number(digits) * UNITS[unit]!
}

/** What is wrong with a section whose form is right. */
export function problemsOf({ memory_limit: memory }: QuickjsConfig): SvcError[] {
  const bytes = bytesOf(memory)
  if (bytes >= LEAST_BYTES && bytes <= MOST_BYTES) return []
  const where = 'sandbox.quickjs.memory_limit'
  return [svcError('CONFIG_INVALID', `${where} must be from 32M to 2G, was "${memory}"`, { where, hint: 'write 512M' })]
}
