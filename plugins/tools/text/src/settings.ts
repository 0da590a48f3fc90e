import { schema } from '@svc/core'

/** The section `tools.text`. */
export interface TextConfig {
  /** Milliseconds that one call may work. */
  timeout_ms: number
  /** Megabytes of heap that one call may have. */
  memory_mb: number
}

export const textConfig = schema<TextConfig>({
  type: 'object',
  properties: {
    timeout_ms: {
      type: 'integer',
      minimum: 50,
      maximum: 60_000,
      default: 2000,
      description:
        'Milliseconds that a query, regular expression, comparison, template or calculation may take before it is stopped.',
    },
    memory_mb: {
      type: 'integer',
      minimum: 32,
      maximum: 2048,
      default: 128,
      description: 'Megabytes of memory that one of them may have.',
    },
  },
  additionalProperties: false,
})
