import { codeOf, messageOf, type CallContext } from '@svc/core'
import type {
  ModelEvent,
  ModelFailure,
  ModelFailureKind,
  ModelInfo,
  ModelList,
  ModelRequest,
  NativeRequest,
  Provider,
} from '@svc/core/contracts'
import {
  countIn,
  createUpstream,
  entryProblems,
  estimateTokens,
  isTree,
  modelInfo,
  modelList,
  nativeHeaders,
  nativeOf,
  readKey,
  textIn,
  type Tree,
  treeIn,
  type Upstream,
  type UpstreamEntry,
} from '@svc/provider-http'
import { MessageReader } from './message-reader.ts'
import { bodyOf, countBody, originalBody } from './request.ts'
import { thinks } from './thinking.ts'
import { described, type ModelTraits, SUPPORTS, supports, traitsOf } from './traits.ts'

/** An entry of `providers` of type `anthropic`. */
export interface AnthropicEntry extends UpstreamEntry {
  readonly prompt_cache?: boolean
}

export interface OpenProvider {
  readonly provider: Provider
  readonly close: () => Promise<void>
}

const BASE_URL = 'https://api.anthropic.com'
const VERSION = '2023-06-01'

// A server with a base_url can work without a key.
const keyOf = (name: string, entry: UpstreamEntry) =>
  readKey(entry, { provider: name, defaultEnv: 'ANTHROPIC_API_KEY', required: entry.base_url === undefined })

/** The problems of the key of an entry. */
export const checkEntry = (name: string, entry: UpstreamEntry) => entryProblems(keyOf(name, entry))

/** Opens the provider of an entry for the Messages API. `signal` aborts when the plugin closes. Throws PROVIDER_KEY, PROVIDER_CONFIG. */
export async function openProvider(name: string, entry: AnthropicEntry, signal: AbortSignal): Promise<OpenProvider> {
  const key = await keyOf(name, entry)
  const upstream = createUpstream({
    provider: name,
    // Many configurations end the address with the version.
    baseUrl: (entry.base_url ?? BASE_URL).replace(/\/v1\/?$/, ''),
    headers: headersOf(entry, key),
    secrets: key === undefined ? [] : [key],
    failureOf,
  })
  const knownModels = new Map<string, KnownModel>()
  const know = (info: ModelInfo, capabilities: Tree): ModelInfo => {
    const traits = traitsOf(info.id, capabilities)
    const model = described(info, traits)
    knownModels.set(info.id, { info: model, traits })
    return model
  }
  for (const model of entry.models ?? []) know(modelInfo(model), {})
  const noTemperature = new Set<string>()
  const load: Parameters<typeof modelList>[0]['load'] = async ctx => {
    const models = await readModels(upstream, ctx)
    return models.map(({ info, capabilities }) => know(info, capabilities))
  }
  const list = modelList({
    configured: entry.models,
    load,
    open: true,
    describe: info => knownModels.get(info.id)?.info ?? info,
    signal,
  })
  const provider: Provider = {
    features: { tool_calling: true, streaming: true, vision: true, supports: SUPPORTS, protocol: PROTOCOL },
    models: async ctx => withoutTemperature(await list(ctx), noTemperature),
    countTokens: (request, ctx) => countTokens(upstream, request, entry, ctx),
    chat(request, ctx) {
      const { info, traits } = knownModels.get(request.model) ?? {}
      const method = request.gathered ? 'whole' : 'stream'
      const native = nativeOf(request, PROTOCOL)
      const reader = () =>
        new MessageReader(name, upstream, { deltas: request.toolCallDeltas === true, isNative: native !== undefined })
      if (native) {
        const options = { headers: betaHeader(native, entry) }
        return upstream[method]('/v1/messages', originalBody(request, native), reader(), ctx, options)
      }
      const options = { output: info?.output, caches: entry.prompt_cache !== false, ...(traits ? { traits } : {}) }
      const send = (sent: ModelRequest) => upstream[method]('/v1/messages', bodyOf(sent, options), reader(), ctx)
      const { temperature, ...withoutIt } = request
      if (temperature === undefined) return send(request)
      if (info?.temperature === false || noTemperature.has(request.model) || thinks(request)) return send(withoutIt)
      return new RetryBeforeFirst(send(request), error => {
        if (!refusesTemperature(error)) return undefined
        noTemperature.add(request.model)
        return send(withoutIt)
      })
    },
    async probe(ctx) {
      await upstream.json('GET', '/v1/models?limit=1', undefined, ctx)
    },
  }
  return { provider, close: () => upstream.close() }
}

interface KnownModel {
  readonly info: ModelInfo
  readonly traits: ModelTraits
}

const PROTOCOL = 'anthropic'
const BETA = 'anthropic-beta'

/** The beta features that the client and the entry ask for. No other header of a client passes. */
function betaHeader(native: NativeRequest, { headers = {} }: UpstreamEntry): Record<string, string> {
  const own = Object.entries(headers).flatMap(([header, value]) => (header.toLowerCase() === BETA ? value.split(',') : []))
  const theirs = nativeHeaders(native, [BETA])[BETA]?.split(',') ?? []
  const all = new Set([...own, ...theirs].map(beta => beta.trim()).filter(beta => beta !== ''))
  return all.size === 0 ? {} : { [BETA]: [...all].join(',') }
}

/** The exact count of an original request, which the API counts without a bill. Any other count is an estimate, because chat counts often. */
async function countTokens(
  upstream: Pick<Upstream, 'json'>,
  request: ModelRequest,
  entry: UpstreamEntry,
  ctx: CallContext
): Promise<number> {
  const native = nativeOf(request, PROTOCOL)
  if (!native) return estimateTokens(request)
  try {
    const headers = betaHeader(native, entry)
    const body = await upstream.json('POST', '/v1/messages/count_tokens', countBody(request, native), ctx, { headers })
    return countIn(body, 'input_tokens') ?? estimateTokens(request)
  } catch (error) {
    // The request is wrong, or the call was aborted: no estimate is better.
    const { kind, upstreamStatus } = ((error as { details?: unknown }).details ?? {}) as Partial<ModelFailure>
    if (codeOf(error) !== 'MODEL_FAILED' || (kind === 'bad_request' && upstreamStatus === 400)) throw error
    return estimateTokens(request)
  }
}

function headersOf({ headers = {} }: UpstreamEntry, key: string | undefined): Record<string, string> {
  const own = Object.fromEntries(Object.entries(headers).map(([header, value]) => [header.toLowerCase(), value]))
  return { 'anthropic-version': VERSION, ...(key === undefined ? {} : { 'x-api-key': key }), ...own }
}

/** True if the model refused the temperature. The model list does not report this for all models, so the first refusal is remembered. */
function refusesTemperature(error: unknown): boolean {
  const { kind } = ((error as { details?: unknown } | undefined)?.details ?? {}) as Partial<ModelFailure>
  return codeOf(error) === 'MODEL_FAILED' && kind === 'bad_request' && /`?temperature`? (is|may|can)/i.test(messageOf(error))
}

function withoutTemperature(list: ModelList, noTemperature: ReadonlySet<string>): ModelList {
  if (noTemperature.size === 0) return list
  return { ...list, models: list.models.map(model => (noTemperature.has(model.id) ? { ...model, temperature: false } : model)) }
}

type ReadError = Partial<ModelFailure> & { readonly message?: string }

const KINDS = new Map<string, ModelFailureKind>(
  Object.entries({
    rate_limit_error: 'rate_limited',
    overloaded_error: 'overloaded',
    api_error: 'overloaded',
    timeout_error: 'timeout',
    authentication_error: 'authentication',
    permission_error: 'authentication',
    billing_error: 'authentication',
    not_found_error: 'bad_request',
    request_too_large: 'context_too_long',
  })
)

/** `prompt is too long: 208310 tokens > 200000 maximum`, ``input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000`` */
const TOO_LONG = /prompt is too long|exceed context limit|context window/i
const COUNTED = /(\d+)(?: tokens| \+ \d+) > (\d+)/
const REFUSED = /content filter|usage policy/i

/** Reads an error: the body of an answer, or an event inside a stream. */
export function failureOf(_status: number, body: unknown): ReadError {
  const error = treeIn(body, 'error')
  const message = textIn(error, 'message')
  const text = message === undefined ? {} : { message }
  const kind = KINDS.get(textIn(error, 'type') ?? '')
  if (kind !== undefined) return { ...text, kind }
  if (message === undefined) return {}
  if (TOO_LONG.test(message)) return { ...text, kind: 'context_too_long', ...countsOf(message) }
  return REFUSED.test(message) ? { ...text, kind: 'content_refused' } : text
}

function countsOf(message: string): Pick<ModelFailure, 'limit' | 'count'> {
  const [, count, limit] = COUNTED.exec(message) ?? []
  return limit === undefined ? {} : { limit: Number(limit), count: Number(count) }
}

/** Maximum pages of the model list. */
const MOST_PAGES = 10

/** Reads the list of models, page by page. */
async function readModels(upstream: Pick<Upstream, 'json'>, ctx: CallContext): Promise<ListedModel[]> {
  const models: ListedModel[] = []
  let after = ''
  for (let page = 0; page < MOST_PAGES; page++) {
    const body = await upstream.json('GET', `/v1/models?limit=1000${after}`, undefined, ctx)
    if (isTree(body) && Array.isArray(body.data)) models.push(...body.data.flatMap(infoOf))
    const last = textIn(body, 'last_id')
    if (!isTree(body) || body.has_more !== true || !last) break
    after = `&after_id=${encodeURIComponent(last)}`
  }
  return models
}

interface ListedModel {
  readonly info: ModelInfo
  readonly capabilities: Tree
}

function infoOf(model: unknown): ListedModel[] {
  const id = textIn(model, 'id')
  if (!id) return []
  const [context, output] = [countIn(model, 'max_input_tokens', 1), countIn(model, 'max_tokens', 1)]
  const capabilities = treeIn(model, 'capabilities')
  const info = {
    id,
    ...(context === undefined ? {} : { context }),
    ...(output === undefined ? {} : { output }),
    ...(supports(capabilities, 'image_input') === false ? { features: { vision: false } } : {}),
  }
  return [{ info, capabilities }]
}

type Events = AsyncIterableIterator<ModelEvent, undefined>
type Result = IteratorResult<ModelEvent, undefined>

/** The events of an answer. If it fails before its first event, `fix` can supply another answer. */
class RetryBeforeFirst implements AsyncIterableIterator<ModelEvent, undefined> {
  #events: Events
  readonly #fix: (error: unknown) => Events | undefined
  #first: Promise<Result> | undefined
  #begun = false
  #left = false

  constructor(events: Events, fix: (error: unknown) => Events | undefined) {
    this.#events = events
    this.#fix = fix
  }

  next(): Promise<Result> {
    if (this.#begun) return this.#events.next()
    if (this.#first) return this.#first.then(() => this.#events.next())
    this.#first = this.#begin()
    return this.#first
  }

  return(): Promise<Result> {
    this.#left = true
    return this.#events.return?.() ?? Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #begin(): Promise<Result> {
    try {
      return await this.#events.next()
    } catch (error) {
      const again = this.#left ? undefined : this.#fix(error)
      if (!again) throw error
      this.#events = again
      return await again.next()
    } finally {
      this.#begun = true
    }
  }
}
