import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ENTRY, type UpstreamEntry } from '@svc/provider-http/entry'

export default definePlugin({
  instances: 'providers',
  type: 'google',
  config: schema<UpstreamEntry>({ type: 'object', properties: ENTRY, additionalProperties: false }),
  async check(config, name = 'google') {
    const { checkEntry } = await import('./google-provider.ts')
    return checkEntry(name, config)
  },
  async setup(scope) {
    const name = scope.instance ?? 'google'
    const { openProvider } = await import('./google-provider.ts')
    const { provider, close } = await openProvider(name, scope.config, scope.signal)
    scope.defer(close)
    scope.add(Providers, name, provider)
  },
})
