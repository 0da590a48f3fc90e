import type { CallContext } from '@svc/core'
import type { Provider } from '@svc/core/contracts'
import { type ConfiguredModel, createUpstream, estimateTokens, modelList, readKey } from '@svc/provider-http'
import { askedOf, createReader } from './wire.ts'

/** An entry of `providers` of type `parrot`. */
export interface ParrotConfig {
  base_url: string
  api_key_env?: string
  api_key_file?: string
  models?: ConfiguredModel[]
}

/** Opens the provider of an entry: reads its key, and connects to nothing. `closing` aborts with the plugin. Throws PROVIDER_KEY, PROVIDER_CONFIG. */
export async function openParrot(
  name: string,
  config: ParrotConfig,
  closing: AbortSignal
): Promise<{ readonly provider: Provider; readonly close: () => Promise<void> }> {
  const key = await readKey(config, { provider: name, required: false })
  const upstream = createUpstream({
    provider: name,
    baseUrl: config.base_url,
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    secrets: key === undefined ? [] : [key],
    frames: 'lines',
    limits: { frameBytes: 1024 * 1024 },
  })
  const voices = async (ctx: CallContext) => {
    const list = (await upstream.json('GET', '/voices', undefined, ctx)) as { voices: string[] }
    return list.voices.map(id => ({ id }))
  }
  const provider: Provider = {
    features: { tool_calling: false, streaming: true, vision: false },
    models: modelList({ configured: config.models, load: voices, open: false, signal: closing }),
    countTokens: async request => estimateTokens(request),
    chat: (request, ctx) => upstream.stream('/say', askedOf(request), createReader(name), ctx),
    probe: async ctx => void (await voices(ctx)),
  }
  return { provider, close: () => upstream.close() }
}
