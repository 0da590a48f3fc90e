import { createUpstream, estimateTokens, modelList, readKey } from '@svc/provider-http'
import { createReader, modelsIn, toRequest } from './protocol.js'

/** @typedef {import('@svc/provider-http').UpstreamEntry & { base_url: string }} LlamaEntry */

/**
 * Creates the provider of one entry. Opens no connection.
 *
 * @type {(name: string, entry: LlamaEntry, signal: AbortSignal) => Promise<{ provider: import('@svc/core/contracts').Provider, close: () => Promise<void> }>}
 */
export async function openLlama(name, entry, signal) {
  const key = await readKey(entry, { provider: name, required: false })
  const upstream = createUpstream({
    provider: name,
    baseUrl: entry.base_url,
    headers: { ...entry.headers, ...(key && { authorization: `Bearer ${key}` }) },
    secrets: key ? [key] : [],
    frames: 'lines',
  })
  const provider = {
    features: { tool_calling: true, streaming: true, vision: false },
    models: modelList({
      configured: entry.models,
      load: async ctx => modelsIn(await upstream.json('GET', '/api/tags', undefined, ctx)),
      open: true, // the tag of a name can be left out: `llama3.2` is `llama3.2:latest`
      signal,
    }),
    countTokens: async (/** @type {import('@svc/core/contracts').ModelRequest} */ request) => estimateTokens(request),
    /** @type {import('@svc/core/contracts').Provider['chat']} */
    chat: (request, ctx) => {
      const kind = request.gathered ? 'whole' : 'stream'
      return upstream[kind]('/api/chat', toRequest(request), createReader(name, upstream), ctx)
    },
    /** @type {import('@svc/core/contracts').Provider['probe']} */
    probe: async ctx => void (await upstream.json('GET', '/api/tags', undefined, ctx)),
  }
  return { provider, close: () => upstream.close() }
}
