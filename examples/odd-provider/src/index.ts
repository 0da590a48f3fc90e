import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ENTRY } from '@svc/provider-http/entry'
import type { ParrotConfig } from './parrot.ts'

const { base_url, api_key_env, api_key_file, models } = ENTRY

export default definePlugin({
  instances: 'providers',
  type: 'parrot',
  config: schema<ParrotConfig>({
    type: 'object',
    properties: { base_url, api_key_env, api_key_file, models },
    required: ['base_url'],
    additionalProperties: false,
  }),
  async setup(scope) {
    const name = scope.instance ?? 'parrot'
    const { openParrot } = await import('./parrot.ts')
    const { provider, close } = await openParrot(name, scope.config, scope.signal)
    scope.defer(close)
    scope.add(Providers, name, provider)
  },
})
