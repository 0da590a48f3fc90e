import { schema } from '@svc/core'

/** What a model costs, per million tokens. */
export interface Price {
  input: number
  output: number
  cached_input?: number
}

/** The section `models`. */
export interface ModelsConfig {
  aliases: Record<string, { provider: string; model: string }>
  prices: Record<string, Price>
  currency: string
}

const name = (description: string) => ({ type: 'string', minLength: 1, description })
const amount = (description: string) => ({ type: 'number', minimum: 0, description })

export const MODELS_CONFIG = schema<ModelsConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    aliases: {
      type: 'object',
      default: {},
      description: 'Names of your own for models; one may stand wherever a model may',
      propertyNames: { minLength: 1, maxLength: 200 },
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['provider', 'model'],
        properties: { provider: name('Name of a provider'), model: name('One of its models') },
      },
    },
    prices: {
      type: 'object',
      default: {},
      description: 'What models cost per million tokens, as "<provider>/<model>": svc_model_cost_total counts it',
      propertyNames: { pattern: '^[^/]+/.+$' },
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['input', 'output'],
        properties: {
          input: amount('A million tokens of input'),
          output: amount('A million tokens of output'),
          cached_input: amount('A million tokens of input that the provider had cached; default: as input'),
        },
      },
    },
    currency: {
      type: 'string',
      pattern: '^[A-Za-z]{1,16}$',
      default: 'USD',
      description: 'The currency of the prices, as the label of the metric tells it',
    },
  },
})
