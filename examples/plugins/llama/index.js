import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ENTRY } from '@svc/provider-http/entry'

const { base_url, api_key_env, headers, models } = ENTRY

/** @type {import('@svc/core').Schema<import('@svc/provider-http').UpstreamEntry & { base_url: string }>} */
const config = schema({
  type: 'object',
  additionalProperties: false,
  required: ['base_url'],
  properties: { base_url, api_key_env, headers, models },
})

export default definePlugin({
  instances: 'providers',
  type: 'llama',
  config,
  async setup(scope) {
    const { openLlama } = await import('./llama.js')
    const name = scope.instance ?? 'llama'
    const { provider, close } = await openLlama(name, scope.config, scope.signal)
    scope.defer(close)
    scope.add(Providers, name, provider)
  },
})
