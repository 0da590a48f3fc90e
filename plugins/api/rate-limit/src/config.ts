import { schema } from '@svc/core'

/** The section `server.rate_limit`, named as in the configuration file. */
export interface RateLimitConfig {
  enabled: boolean
  requests_per_minute: number
  requests_per_day: number
  by: 'address' | 'principal'
}

const requests = (value: number, span: string) => ({
  type: 'integer',
  minimum: 1,
  default: value,
  description: `Maximum requests of a client ${span}.`,
})

export const rateLimitConfig = schema<RateLimitConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: false, description: 'Enable rate limiting.' },
    requests_per_minute: requests(60, 'per minute'),
    requests_per_day: requests(1000, 'per day'),
    by: {
      enum: ['address', 'principal'],
      default: 'address',
      description: 'Count requests by address, or by authenticated principal.',
    },
  },
})
