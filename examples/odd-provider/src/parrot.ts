import type { CallContext } from '@svc/core'
import type { Provider } from '@svc/core/contracts'
import { type ConfiguredModel, createUpstream, estimateTokens, modelList, readKey } from '@svc/provider-http'
import { readLines } from './lines.ts'
import { createPost } from './post.ts'
import { askedOf, eventsOf } from './wire.ts'

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
  const secrets = key === undefined ? [] : [key]
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` }
  const server = { provider: name, baseUrl: config.base_url, headers, secrets }
  // It handles requests with a JSON response. Only the stream has a custom format.
  const upstream = createUpstream(server)
  const post = createPost(server, closing)
  const voices = async (ctx: CallContext) => {
    const list = (await upstream.json('GET', '/voices', undefined, ctx)) as { voices: string[] }
    return list.voices.map(id => ({ id }))
  }
  const provider: Provider = {
    features: { tool_calling: false, streaming: true, vision: false },
    models: modelList({ configured: config.models, load: voices, open: false, signal: closing }),
    countTokens: async request => estimateTokens(request),
    chat: (request, ctx) => post('/say', askedOf(request), body => eventsOf(name, readLines(body)), ctx),
    probe: async ctx => void (await voices(ctx)),
  }
  return { provider, close: () => upstream.close() }
}
