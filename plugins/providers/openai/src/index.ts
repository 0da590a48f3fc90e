import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ENTRY } from '@svc/provider-http/entry'
import type { OpenAiConfig } from './openai-provider.ts'
import { PRESET_NAMES } from './presets.ts'

const preset = {
  enum: PRESET_NAMES,
  description:
    'Which server it is: address, key variable and what it does otherwise. Default: the name of the entry where that is one, else `openai`; `compatible` with a `base_url`.',
}
const api_version = {
  type: 'string',
  pattern: '^[\\w.-]+$',
  description: 'For `azure`: the query `api-version`, where its server asks for one.',
}

export default definePlugin({
  instances: 'providers',
  type: 'openai',
  config: schema<OpenAiConfig>({ type: 'object', properties: { preset, ...ENTRY, api_version }, additionalProperties: false }),
  async check(config, name = 'openai') {
    const { checkEntry } = await import('./openai-provider.ts')
    return checkEntry(name, config)
  },
  async setup(scope) {
    const name = scope.instance ?? 'openai'
    const { openProvider } = await import('./openai-provider.ts')
    const { provider, close } = await openProvider(name, scope.config, scope.signal)
    scope.defer(close)
    scope.add(Providers, name, provider)
  },
})
