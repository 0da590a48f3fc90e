import { schema } from '@svc/core'

/** The section `rest`. */
export interface RestConfig {
  chat_body_limit: number
}

export const REST_CONFIG = schema<RestConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    chat_body_limit: {
      type: 'integer',
      // smaller ones would refuse common requests
      minimum: 16_384,
      default: 33_554_432,
      description: 'Maximum bytes of the body of a chat request, which can have images and files',
    },
  },
})
