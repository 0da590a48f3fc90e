import { schema } from '@svc/core'

/** The section `tools.text`. */
export interface TextConfig {
  /** Time limit of a call in milliseconds. */
  timeout_ms: number
  /** Heap limit of a call in megabytes. */
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
      description: 'Time limit of a query, regular expression, comparison, template or calculation in milliseconds.',
    },
    memory_mb: {
      type: 'integer',
      minimum: 32,
      maximum: 2048,
      default: 128,
      description: 'Memory limit of these calls in megabytes.',
    },
  },
  additionalProperties: false,
})
