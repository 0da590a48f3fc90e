import type { ModelInfo, Provider } from '@svc/core/contracts'
import {
  createUpstream,
  entryProblems,
  estimateTokens,
  modelInfo,
  modelList,
  readKey,
  type UpstreamEntry,
} from '@svc/provider-http'
import { AnswerReader } from './answer-reader.ts'
import { failureOf } from './failure.ts'
import { readModels } from './models.ts'
import { bodyOf, modelPath } from './request.ts'

export interface OpenProvider {
  readonly provider: Provider
  readonly close: () => Promise<void>
}

const BASE_URL = 'https://generativelanguage.googleapis.com'

const VARIABLES = ['GEMINI_API_KEY', 'GOOGLE_API_KEY']

function keyOf(name: string, entry: UpstreamEntry): Promise<string | undefined> {
  const defaultEnv = VARIABLES.find(variable => process.env[variable]?.trim()) ?? VARIABLES[0]!
  // A server of one's own may ask for no key.
  return readKey(entry, { provider: name, defaultEnv, required: entry.base_url === undefined })
}

/** What is wrong with the key of an entry. */
export const checkEntry = (name: string, entry: UpstreamEntry) => entryProblems(keyOf(name, entry))

/** An entry of `providers` as a provider that speaks Gemini's API. `signal` aborts when the plugin is closed. Throws PROVIDER_KEY, PROVIDER_CONFIG. */
export async function openProvider(name: string, entry: UpstreamEntry, signal: AbortSignal): Promise<OpenProvider> {
  const key = await keyOf(name, entry)
  // Many write the address with the version at its end.
  const [, baseUrl = BASE_URL, version = '/v1beta'] = /^(.*?)(\/v1(?:alpha|beta)?)?\/?$/s.exec(entry.base_url ?? BASE_URL) ?? []
  const upstream = createUpstream({
    provider: name,
    baseUrl,
    headers: headersOf(entry, key),
    secrets: key === undefined ? [] : [key],
    failureOf,
  })
  const configured = new Map<string, ModelInfo>(entry.models?.map(modelInfo).map(info => [info.id, info]))
  const thinkers = new Set<string>()
  const load: Parameters<typeof modelList>[0]['load'] = async use => {
    const models = await readModels(upstream, `${version}/models`, use)
    for (const { info, thinking } of models) if (thinking) thinkers.add(info.id)
    return models.map(({ info }) => info)
  }
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: true },
    models: modelList({ configured: entry.models, load, open: false, signal }),
    countTokens: async request => estimateTokens(request),
    chat(request, use) {
      const { model } = request
      const body = bodyOf(request, { ...configured.get(model), thinking: thinkers.has(model) })
      const [path, reader] = [`${version}/${modelPath(model)}`, new AnswerReader(name, upstream)]
      return request.gathered
        ? upstream.whole(`${path}:generateContent`, body, reader, use)
        : upstream.stream(`${path}:streamGenerateContent?alt=sse`, body, reader, use)
    },
    async probe(use) {
      await upstream.json('GET', `${version}/models?pageSize=1`, undefined, use)
    },
  }
  return { provider, close: () => upstream.close() }
}

function headersOf({ headers = {} }: UpstreamEntry, key: string | undefined): Record<string, string> {
  const own = Object.fromEntries(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]))
  return { ...(key === undefined ? {} : { 'x-goog-api-key': key }), ...own }
}
