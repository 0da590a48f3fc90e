import { schema } from '@svc/core'

export interface UsageConfig {
  enabled: boolean
  keep: { hours: number; days: number }
}

const whole = (maximum: number, value: number, description: string) => ({
  type: 'integer',
  minimum: 1,
  maximum,
  default: value,
  description,
})

export const USAGE_CONFIG = schema<UsageConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: true, description: 'Keep counts of requests, tokens and costs over time' },
    keep: {
      type: 'object',
      default: {},
      additionalProperties: false,
      properties: {
        hours: whole(720, 48, 'Hours for which svc keeps counts by minute'),
        days: whole(3650, 90, 'Days for which svc keeps counts by hour'),
      },
    },
  },
})
