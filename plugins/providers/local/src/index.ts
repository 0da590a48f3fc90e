import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { createLocalProvider, type LocalConfig, MODELS } from './local-provider.ts'

const tokens = { type: 'integer', minimum: 1 }
const model = {
  type: 'object',
  properties: { id: { type: 'string', minLength: 1 }, context: tokens, output: tokens },
  required: ['id', 'context', 'output'],
  additionalProperties: false,
}

export default definePlugin({
  instances: 'providers',
  type: 'local',
  config: schema<LocalConfig>({
    type: 'object',
    properties: {
      models: {
        type: 'array',
        items: model,
        minItems: 1,
        default: MODELS,
        description: 'Models of this entry, with their limits in tokens. The first is the default.',
      },
    },
    additionalProperties: false,
  }),
  setup(scope) {
    scope.add(Providers, scope.instance ?? 'local', createLocalProvider(scope.config))
  },
})
