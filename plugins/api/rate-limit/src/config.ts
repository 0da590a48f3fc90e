import { schema } from '@svc/core'

/** The section `server.rate_limit`. Names as in the configuration file. */
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
  description: `Requests that a client has ${span}.`,
})

export const rateLimitConfig = schema<RateLimitConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    enabled: { type: 'boolean', default: false, description: 'Whether requests are counted and limited.' },
    requests_per_minute: requests(60, 'a minute'),
    requests_per_day: requests(1000, 'a day'),
    by: {
      enum: ['address', 'principal'],
      default: 'address',
      description: 'Count requests by address, or by authenticated principal.',
    },
  },
})
