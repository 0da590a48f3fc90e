import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ENTRY } from '@svc/provider-http/entry'
import type { AnthropicEntry } from './anthropic-provider.ts'

const prompt_cache = {
  type: 'boolean',
  default: true,
  description: 'Mark tools, system prompt and conversation for the prompt cache of the API (`cache_control`).',
}

export default definePlugin({
  instances: 'providers',
  type: 'anthropic',
  config: schema<AnthropicEntry>({ type: 'object', properties: { ...ENTRY, prompt_cache }, additionalProperties: false }),
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
