import { definePlugin, schema } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { ENTRY } from '@svc/provider-http/entry'
import type { OpenAiConfig } from './openai-provider.ts'
import { PRESET_NAMES } from './presets.ts'

const preset = {
  enum: PRESET_NAMES,
  description:
    'Server type: sets the address, the key variable and the dialect. Default: the name of the entry if it is a preset; else `compatible` with a `base_url`, `openai` without.',
}
const api_version = {
  type: 'string',
  pattern: '^[\\w.-]+$',
  description: 'For `azure`: value of the query `api-version`, if the server requires it.',
}
const api = {
  enum: ['chat_completions', 'responses'],
  description:
    'API of the server: `chat_completions` (default), or `responses`, which returns encrypted reasoning between the steps of a turn.',
}
const reasoning_summary = {
  enum: ['auto', 'concise', 'detailed'],
  description:
    'For `api: responses`: ask for a summary of the reasoning. OpenAI requires a verified organization for some models.',
}
const prompt_cache = {
  type: 'boolean',
  description:
    'Send `prompt_cache_key`, a hash of the conversation, so that the server finds its cached prompt. Default: true for `openai` and `azure`, as other servers can refuse it.',
}

export default definePlugin({
  instances: 'providers',
  type: 'openai',
  config: schema<OpenAiConfig>({
    type: 'object',
    properties: { preset, ...ENTRY, api_version, prompt_cache, api, reasoning_summary },
    additionalProperties: false,
  }),
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
