import { schema } from '@svc/core'

export interface TracesConfig {
  enabled: boolean
  content: boolean
  keep: { days: number; count: number; bytes: number }
}

const whole = (minimum: number, maximum: number, value: number, description: string) => ({
  type: 'integer',
  minimum,
  maximum,
  default: value,
  description,
})

export const TRACES_CONFIG = schema<TracesConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: false, description: 'Record traces of requests, runs and jobs' },
    content: {
      type: 'boolean',
      default: false,
      description: 'Keep the inputs and outputs of models and tools. They contain texts of users',
    },
    keep: {
      type: 'object',
      default: {},
      additionalProperties: false,
      description: 'Limits of the stored traces. Once a minute, svc deletes the oldest traces above them',
      properties: {
        days: whole(1, 3650, 7, 'Days for which svc keeps a trace'),
        count: whole(1, 10_000_000, 20_000, 'Maximum number of traces'),
        bytes: whole(1_000_000, 1_000_000_000_000, 268_435_456, 'Maximum size of all traces, approximately'),
      },
    },
  },
})
