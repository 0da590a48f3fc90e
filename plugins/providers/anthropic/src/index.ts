import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ENTRY, type UpstreamEntry } from '@svc/provider-http/entry'

export default definePlugin({
  instances: 'providers',
  type: 'anthropic',
  config: schema<UpstreamEntry>({ type: 'object', properties: ENTRY, additionalProperties: false }),
  async check(config, name = 'anthropic') {
    const { checkEntry } = await import('./anthropic-provider.ts')
    return checkEntry(name, config)
  },
  async setup(scope) {
    const name = scope.instance ?? 'anthropic'
    const { openProvider } = await import('./anthropic-provider.ts')
    const { provider, close } = await openProvider(name, scope.config, scope.signal)
    scope.defer(close)
    scope.add(Providers, name, provider)
  },
})
