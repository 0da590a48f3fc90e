import { codeOf, messageOf } from '@svc/core'
import type { ModelFailure, ModelInfo, ModelList, ModelRequest, Provider } from '@svc/core/contracts'
import {
  createUpstream,
  entryProblems,
  estimateTokens,
  modelInfo,
  modelList,
  readKey,
  type UpstreamEntry,
} from '@svc/provider-http'
import { failureOf } from './failure.ts'
import { MessageReader } from './message-reader.ts'
import { readModels } from './models.ts'
import { bodyOf } from './request.ts'
import { SecondTry } from './second-try.ts'

export interface OpenProvider {
  readonly provider: Provider
  readonly close: () => Promise<void>
}

const BASE_URL = 'https://api.anthropic.com'
const VERSION = '2023-06-01'

// A server of one's own may ask for no key.
const keyOf = (name: string, entry: UpstreamEntry) =>
  readKey(entry, { provider: name, defaultEnv: 'ANTHROPIC_API_KEY', required: entry.base_url === undefined })

/** What is wrong with the key of an entry. */
export const checkEntry = (name: string, entry: UpstreamEntry) => entryProblems(keyOf(name, entry))

/** An entry of `providers` as a provider that speaks the Messages API. `signal` aborts when the plugin is closed. Throws PROVIDER_KEY, PROVIDER_CONFIG. */
export async function openProvider(name: string, entry: UpstreamEntry, signal: AbortSignal): Promise<OpenProvider> {
  const key = await keyOf(name, entry)
  const upstream = createUpstream({
    provider: name,
    // Many write the address with the version at its end.
    baseUrl: (entry.base_url ?? BASE_URL).replace(/\/v1\/?$/, ''),
    headers: headersOf(entry, key),
    secrets: key === undefined ? [] : [key],
    failureOf,
  })
  const known = new Map<string, ModelInfo>(entry.models?.map(modelInfo).map(info => [info.id, info]))
  const cool = new Set<string>()
  const load: Parameters<typeof modelList>[0]['load'] = async use => {
    const models = await readModels(upstream, use)
    for (const model of models) known.set(model.id, model)
    return models
  }
  const list = modelList({ configured: entry.models, load, open: true, signal })
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: true },
    models: async use => withoutTemperature(await list(use), cool),
    countTokens: async request => estimateTokens(request),
    chat(request, use) {
      const info = known.get(request.model)
      const way = request.gathered ? 'whole' : 'stream'
      const ask = (asked: ModelRequest) =>
        upstream[way]('/v1/messages', bodyOf(asked, info?.output), new MessageReader(name, upstream), use)
      const { temperature, ...cooled } = request
      if (temperature === undefined) return ask(request)
      if (info?.temperature === false || cool.has(request.model)) return ask(cooled)
      return new SecondTry(ask(request), error => {
        if (!refusesTemperature(error)) return undefined
        cool.add(request.model)
        return ask(cooled)
      })
    },
    async probe(use) {
      await upstream.json('GET', '/v1/models?limit=1', undefined, use)
    },
  }
  return { provider, close: () => upstream.close() }
}

function headersOf({ headers = {} }: UpstreamEntry, key: string | undefined): Record<string, string> {
  const own = Object.fromEntries(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]))
  return { 'anthropic-version': VERSION, ...(key === undefined ? {} : { 'x-api-key': key }), ...own }
}

/** Newer models refuse a temperature, and no list says so of all: the first refusal is fixed and remembered. */
function refusesTemperature(error: unknown): boolean {
  const { kind } = ((error as { details?: unknown } | undefined)?.details ?? {}) as Partial<ModelFailure>
  return codeOf(error) === 'MODEL_FAILED' && kind === 'bad_request' && /`?temperature`? (is|may|can)/i.test(messageOf(error))
}

function withoutTemperature(list: ModelList, cool: ReadonlySet<string>): ModelList {
  if (cool.size === 0) return list
  return { ...list, models: list.models.map(model => (cool.has(model.id) ? { ...model, temperature: false } : model)) }
}
