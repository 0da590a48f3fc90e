import type { ModelFailure, ModelFailureKind, ModelInfo, Provider, EmbedReply, EmbedRequest } from '@svc/core/contracts'
import {
  countIn,
  createUpstream,
  embeddingModel,
  embeds,
  entryProblems,
  estimateTokens,
  isTree,
  modelInfo,
  modelList,
  nativeOf,
  readKey,
  textIn,
  type Tree,
  treeIn,
  type Upstream,
  type UpstreamEntry,
  EMBED_LIMITS,
  embedReply,
  malformed,
  textsOf,
} from '@svc/provider-http'
import { AnswerReader } from './answer-reader.ts'
import { described, SUPPORTS } from './features.ts'
import { bodyOf, modelPath } from './request.ts'
import type { CallContext } from '@svc/core'

export interface OpenGoogle {
  readonly provider: Provider
  readonly close: () => Promise<void>
}

const BASE_URL = 'https://generativelanguage.googleapis.com'

const PROTOCOL = 'google'

/** Models of the configuration are taken for models for embeddings by their names. */
const describe = (model: ModelInfo): ModelInfo => {
  if (embeds(model)) return model
  return /embedding/i.test(model.id) ? embeddingModel(model) : described(model)
}

const VARIABLES = ['GEMINI_API_KEY', 'GOOGLE_API_KEY']

function keyOf(name: string, entry: UpstreamEntry): Promise<string | undefined> {
  const defaultEnv = VARIABLES.find(variable => process.env[variable]?.trim()) ?? VARIABLES[0]!
  // A server with a base_url can work without a key.
  return readKey(entry, { provider: name, defaultEnv, required: entry.base_url === undefined })
}

/** The problems of the key of an entry. */
export const checkEntry = (name: string, entry: UpstreamEntry) => entryProblems(keyOf(name, entry))

/** Opens the provider of an entry for the Gemini API. `signal` aborts when the plugin closes. Throws PROVIDER_KEY, PROVIDER_CONFIG. */
export async function openProvider(name: string, entry: UpstreamEntry, signal: AbortSignal): Promise<OpenGoogle> {
  const key = await keyOf(name, entry)
  // Many configurations end the address with the version.
  const [, baseUrl = BASE_URL, version = '/v1beta'] = /^(.*?)(\/v1(?:alpha|beta)?)?\/?$/s.exec(entry.base_url ?? BASE_URL) ?? []
  const upstream = createUpstream({
    provider: name,
    baseUrl,
    headers: headersOf(entry, key),
    secrets: key === undefined ? [] : [key],
    failureOf,
  })
  const configured = new Map<string, ModelInfo>(entry.models?.map(modelInfo).map(info => [info.id, info]))
  /** Whether models can think, as far as the list shows. */
  const thinkers = new Map<string, boolean>()
  const load: Parameters<typeof modelList>[0]['load'] = async ctx => {
    const models = await readModels(upstream, `${version}/models`, ctx)
    for (const { info, thinking } of models) if (thinking !== undefined) thinkers.set(info.id, thinking)
    // Models for embeddings come last: the first model is the default.
    const sorted = models.toSorted((a, b) => Number(embeds(a.info)) - Number(embeds(b.info)))
    return sorted.map(({ info, thinking }) => (embeds(info) ? info : described(info, thinking)))
  }
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: true, supports: SUPPORTS, protocol: PROTOCOL },
    models: modelList({ configured: entry.models, load, open: false, describe, signal }),
    countTokens: async request => estimateTokens(request),
    chat(request, ctx) {
      const { model } = request
      const native = nativeOf(request, PROTOCOL)
      const traits = { ...configured.get(model), thinking: thinkers.get(model) === true }
      const body = native ? native.body : bodyOf(request, traits)
      const reader = new AnswerReader(name, upstream, { isNative: native !== undefined, ...(request.n ? { n: request.n } : {}) })
      const path = `${version}/${modelPath(model)}`
      return request.gathered
        ? upstream.whole(`${path}:generateContent`, body, reader, ctx)
        : upstream.stream(`${path}:streamGenerateContent?alt=sse`, body, reader, ctx)
    },
    embed: (request, ctx) => embedTexts({ provider: name, upstream, version }, request, ctx),
    async probe(ctx) {
      await upstream.json('GET', `${version}/models?pageSize=1`, undefined, ctx)
    },
  }
  return { provider, close: () => upstream.close() }
}

function headersOf({ headers = {} }: UpstreamEntry, key: string | undefined): Record<string, string> {
  const own = Object.fromEntries(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]))
  return { ...(key === undefined ? {} : { 'x-goog-api-key': key }), ...own }
}

type ReadError = Partial<ModelFailure> & { readonly message?: string }

const KINDS = new Map<string, ModelFailureKind>(
  Object.entries({
    RESOURCE_EXHAUSTED: 'rate_limited',
    UNAVAILABLE: 'overloaded',
    INTERNAL: 'overloaded',
    UNKNOWN: 'overloaded',
    ABORTED: 'overloaded',
    DEADLINE_EXCEEDED: 'timeout',
    UNAUTHENTICATED: 'authentication',
    PERMISSION_DENIED: 'authentication',
    NOT_FOUND: 'bad_request',
  })
)

const BAD_KEY = /API_KEY_|API key (not valid|expired|not found)/i
const TOO_LONG = /token count.*exceeds|payload size exceeds/i
const COUNTS = /token count \((\d+)\) exceeds the maximum number of tokens allowed \((\d+)\)/i

/** Reads an error: the body of an answer (an object, or a list with one object), or a frame of a stream. */
export function failureOf(_status: number, body: unknown): ReadError {
  const error = treeIn(Array.isArray(body) ? body[0] : body, 'error')
  const message = textIn(error, 'message')
  const details = Array.isArray(error.details) ? error.details.filter(isTree) : []
  const retryAfterMs = delayOf(details)
  const kind = kindOf(error, message ?? '', details)
  return {
    ...(message === undefined ? {} : { message }),
    ...(kind === undefined ? {} : { kind }),
    ...(kind === 'context_too_long' ? sizesOf(message ?? '') : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

function kindOf(error: Tree, message: string, details: readonly Tree[]): ModelFailureKind | undefined {
  if (BAD_KEY.test(message) || details.some(detail => BAD_KEY.test(textIn(detail, 'reason') ?? ''))) return 'authentication'
  return TOO_LONG.test(message) ? 'context_too_long' : KINDS.get(textIn(error, 'status') ?? '')
}

function sizesOf(message: string): Pick<ModelFailure, 'limit' | 'count'> {
  const [, count, limit] = COUNTS.exec(message) ?? []
  return limit === undefined ? {} : { limit: Number(limit), count: Number(count) }
}

const LONGEST_MS = 24 * 3600 * 1000

/** `{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}` */
function delayOf(details: readonly Tree[]): number | undefined {
  const info = details.find(detail => textIn(detail, '@type')?.endsWith('google.rpc.RetryInfo'))
  const seconds = /^(\d{1,12}(?:\.\d+)?)s$/.exec(textIn(info, 'retryDelay') ?? '')?.[1]
  return seconds === undefined ? undefined : Math.min(Math.ceil(Number(seconds) * 1000), LONGEST_MS)
}

/** Maximum pages of the model list. */
const MOST_PAGES = 10

/** A model of the list. `thinking`: whether it can return its thoughts, if the list tells. */
interface ListedModel {
  readonly info: ModelInfo
  readonly thinking: boolean | undefined
}

/** Reads the list of models page by page, and keeps the models that generate content or make embeddings. */
async function readModels(upstream: Pick<Upstream, 'json'>, path: string, ctx: CallContext): Promise<ListedModel[]> {
  const models: ListedModel[] = []
  let next = ''
  for (let page = 0; page < MOST_PAGES; page++) {
    const body = await upstream.json('GET', `${path}?pageSize=1000${next}`, undefined, ctx)
    if (isTree(body) && Array.isArray(body.models)) models.push(...body.models.flatMap(modelOf))
    const token = textIn(body, 'nextPageToken')
    if (!token) break
    next = `&pageToken=${encodeURIComponent(token)}`
  }
  return models
}

function modelOf(model: unknown): ListedModel[] {
  const id = textIn(model, 'name')?.replace(/^models\//, '')
  if (!id || !isTree(model)) return []
  const [context, output] = [countIn(model, 'inputTokenLimit', 1), countIn(model, 'outputTokenLimit', 1)]
  const info = { id, ...(context === undefined ? {} : { context }), ...(output === undefined ? {} : { output }) }
  const { supportedGenerationMethods: methods, thinking } = model
  if (generates(methods)) return [{ info, thinking: typeof thinking === 'boolean' ? thinking : undefined }]
  return makesVectors(methods) ? [{ info: embeddingModel(info), thinking: undefined }] : []
}

/** True if a model generates content. Without a list of methods, the answer is yes. */
const generates = (methods: unknown): boolean =>
  !Array.isArray(methods) || methods.includes('generateContent') || methods.includes('streamGenerateContent')

const makesVectors = (methods: unknown): boolean =>
  Array.isArray(methods) && (methods.includes('embedContent') || methods.includes('batchEmbedContents'))

/** The API takes at most so many texts in a request. */
const MOST = 100

/** The server of a provider. */
interface Server {
  readonly provider: string
  readonly upstream: Pick<Upstream, 'json'>
  /** The version in its paths. */
  readonly version: string
}

/** Makes embeddings with `batchEmbedContents`, in as many requests as the API needs. Throws MODEL_FAILED. */
async function embedTexts(server: Server, request: EmbedRequest, ctx: CallContext): Promise<EmbedReply> {
  const { provider, upstream, version } = server
  const texts = textsOf(provider, request)
  const model = modelPath(request.model)
  const vectors: unknown[] = []
  let counted = 0
  for (let from = 0; from < texts.length; from += MOST) {
    const batch = texts.slice(from, from + MOST)
    const requests = batch.map(text => requestOf(model, text, request.dimensions))
    const body = await upstream.json('POST', `${version}/${model}:batchEmbedContents`, { requests }, ctx, EMBED_LIMITS)
    const made = isTree(body) && Array.isArray(body.embeddings) ? (body.embeddings as unknown[]) : []
    if (made.length !== batch.length) throw malformed(provider)
    vectors.push(...made.map(one => (isTree(one) ? one.values : undefined)))
    counted += countIn(treeIn(body, 'usageMetadata'), 'promptTokenCount') ?? estimateOf(request.model, batch)
  }
  return embedReply(provider, request, vectors, { input: counted, output: 0 })
}

const requestOf = (model: string, text: string, dimensions: number | undefined) => ({
  model,
  content: { parts: [{ text }] },
  ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
})

/** Most models do not report what they read. */
const estimateOf = (model: string, texts: readonly string[]): number =>
  estimateTokens({ model, messages: [{ role: 'user', parts: texts.map(text => ({ type: 'text', text })) }] })
