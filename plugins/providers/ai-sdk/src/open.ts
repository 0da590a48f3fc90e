import { type CallContext, type Log, SECRET, type SvcError, traceHeaders } from '@svc/core'
import type { EmbedReply, EmbedRequest, ModelRequest, Provider, ToolSpec } from '@svc/core/contracts'
import {
  type ConfiguredModel,
  createHide,
  cutShort,
  embedReply,
  entryProblems,
  estimateTokens,
  EventStream,
  malformed,
  modelList,
  readKey,
  secretsOf,
  textsOf,
} from '@svc/provider-http'
import type { AiSdkConfig } from './config.ts'
import { badAddress, fieldIgnored, noAddresses, noEmbeddings, packageMissing, secretOption } from './errors.ts'
import { createEvents, type EventReader } from './events.ts'
import { createFailures, type Failures } from './failure.ts'
import { createGuardedFetch, type ProviderFetch } from './fetch.ts'
import { dimensionOptions, ignoredField, optionsOf, supportsOf } from './features.ts'
import { findPackage, openPackage, type PackageModels, type Packages } from './package.ts'
import { optionsOfHint, toPrompt } from './prompt.ts'
import {
  type CallOptions,
  type EmbeddingModel,
  type FunctionTool,
  type Generated,
  type GeneratedPart,
  type LanguageModel,
  mergeMetadata,
  type Metadata,
  type Streamed,
  type StreamPart,
  type ToolChoice,
  type Version,
  type Warning,
} from './sdk.ts'

/** Finds problems that the schema cannot find: secrets in options, a missing package, a missing key. */
export async function checkConfig(name: string, config: AiSdkConfig, places: Packages['places']): Promise<readonly SvcError[]> {
  const secret = secretIn(config.options, 'options') ?? secretIn(config.provider_options, 'provider_options')
  return [
    ...(secret === undefined ? [] : [secretOption(secret)]),
    ...(findPackage(config.package, places) ? [] : [packageMissing(config.package)]),
    ...(await entryProblems(readKey(config, { provider: name, required: false }))),
  ]
}

/** The path of an option that has a secret's name and a text value. */
function secretIn(value: unknown, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, inner] of Object.entries(value)) {
    const secretPath = isSecretValue(name, inner) ? `${path}.${name}` : secretIn(inner, `${path}.${name}`)
    if (secretPath !== undefined) return secretPath
  }
  return undefined
}

const isSecretValue = (name: string, value: unknown) =>
  typeof value === 'string' && (SECRET.test(name) || /[a-z](Key|Token|Secret|Password)$/.test(name))

/** Arguments of `openProvider`. */
export interface OpenOptions {
  readonly name: string
  readonly config: AiSdkConfig
  readonly log: Log
  readonly signal: AbortSignal
  readonly packages: Packages
}

interface Opened {
  readonly provider: Provider
  readonly close: () => Promise<void>
}

/** Opens an entry: reads its key, loads its package and creates its provider. Throws PROVIDER_KEY, PROVIDER_CONFIG, PROVIDER_PACKAGE. */
export async function openProvider(parts: OpenOptions): Promise<Opened> {
  const { name, config, log, signal, packages } = parts
  const { base_url: baseURL, headers = {}, models, provider_options: providerOptions } = config
  const apiKey = await readKey(config, { provider: name, required: false })
  const hide = createHide(secretsOf([...(apiKey === undefined ? [] : [apiKey]), ...environmentSecrets()], headers))
  const upstream = createGuardedFetch(name, baseURL)
  const options = {
    ...config.options,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(baseURL === undefined ? {} : { baseURL }),
    headers,
    fetch: upstream.fetch,
  }
  const first = models?.[0]
  const model = typeof first === 'object' ? first.id : first
  const made = await openPackage({ package: config.package, export: config.export, options, model, hide }, packages)
  const note = (words: string) => log.warn({ provider: name, words }, 'the package of a provider failed')
  const failures = createFailures({ provider: name, hide, note })
  const warn = createWarn(name, log, hide)
  const provider = createAiSdkProvider({ name, models, providerOptions, upstream, signal, made, failures, warn })
  return { provider, close: () => upstream.close() }
}

/** Dependencies of `createAiSdkProvider`. */
interface AiSdkOptions {
  /** Name of the entry. */
  readonly name: string
  /** Models of the configuration. Without them, any id is accepted. */
  readonly models: readonly ConfiguredModel[] | undefined
  readonly providerOptions: Metadata | undefined
  readonly upstream: ProviderFetch
  /** The signal of the plugin. */
  readonly signal: AbortSignal
  readonly made: PackageModels
  readonly failures: Failures
  readonly warn: (warnings: readonly Warning[]) => void
}

/** Adapts the models of an AI SDK package to `Provider`. */
function createAiSdkProvider(parts: AiSdkOptions): Provider {
  const { name, models, upstream, signal, made, failures } = parts
  // Without a list of models, any id can be that of a model for embeddings.
  const supports = supportsOf(made.trial, made.makeEmbedding !== undefined && models === undefined)
  return {
    features: { tool_calling: true, streaming: true, vision: true, supports },
    models: modelList({ configured: models, load: async () => [], open: true, signal }),
    async countTokens(request, ctx) {
      ctx.signal.throwIfAborted()
      return estimateTokens(request)
    },
    chat: (request, ctx) => chat(parts, request, ctx),
    async embed(request, ctx) {
      ctx.signal.throwIfAborted()
      if (!made.makeEmbedding) throw noEmbeddings(name)
      try {
        return await embedTexts({ ...parts, makeEmbedding: made.makeEmbedding }, request, ctx)
      } catch (error) {
        ctx.signal.throwIfAborted()
        throw failures.thrown(error)
      }
    },
    probe: ctx => upstream.probe(ctx.signal),
  }
}

function chat(parts: AiSdkOptions, request: ModelRequest, ctx: CallContext): EventStream {
  const { name, made, failures, warn, providerOptions } = parts
  const events = new EventStream(ctx.signal)
  const warned = (warnings: readonly Warning[]) => {
    warn(warnings)
    const ignored = (warnings ?? []).map(warning => ignoredField(request, warning)).find(field => field !== undefined)
    if (ignored !== undefined) throw fieldIgnored(name, ignored)
  }
  const converter = createEvents({
    emit: events.push,
    warn: warned,
    failureOf: failures.streamed,
    cut: () => cutShort(name),
    deltas: request.toolCallDeltas === true,
    stops: request.stop ?? [],
    logprobs: request.logprobs,
  })
  const ask = async (ending: AbortSignal) => {
    const model = made.makeModel(request.model)
    const addresses = addressesIn(request)
    if (!addresses.every(address => URL.canParse(address))) throw badAddress(name)
    if (addresses.length > 0 && !(await takesAddresses(model))) throw noAddresses(name)
    const options = toCallOptions(request, { model, provider: name, providerOptions, signal: ending }, ctx)
    return request.gathered && model.doGenerate ? toStream(await model.doGenerate(options)) : model.doStream(options)
  }
  return events.from(new Answer({ events, converter, ask, failureOf: failures.thrown }))
}

const addressesIn = ({ messages }: ModelRequest) =>
  messages.flatMap(({ parts }) => parts.flatMap(part => (part.type === 'image_url' ? part.url : [])))

/** Whether a package passes images at an address on. A package that does not tell may fail by itself. */
async function takesAddresses({ supportedUrls }: LanguageModel): Promise<boolean> {
  const supported = await supportedUrls
  if (supported === undefined) return true
  return Object.keys(supported).some(type => type.startsWith('image/') || type === '*' || type === '*/*')
}

/** Arguments of a call besides the request. */
interface CallSettings {
  readonly model: LanguageModel
  /** Name of the entry. It identifies the messages of this provider. */
  readonly provider: string
  /** Options for each call, by the name of the provider in the SDK. */
  readonly providerOptions?: Metadata | undefined
  readonly signal: AbortSignal
}

/** Converts a request to the options of `doStream`. */
function toCallOptions(
  request: ModelRequest,
  parts: CallSettings,
  ctx: Pick<CallContext, 'requestId' | 'trace' | 'traceState'>
): CallOptions {
  const { temperature, maxTokens, tools = [], toolChoice } = request
  const { specificationVersion: version } = parts.model
  const { reasoning, providerOptions: own } = optionsOf(request, parts.model)
  const providerOptions = mergeMetadata(own, parts.providerOptions)
  return {
    prompt: toPrompt(request.messages, version, parts.provider),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...samplingOf(request),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(tools.length === 0 ? {} : { tools: tools.map(tool => toTool(tool, version)), toolChoice: toChoice(toolChoice) }),
    ...formatOf(request),
    ...(providerOptions === undefined ? {} : { providerOptions }),
    headers: headersOf(ctx),
    abortSignal: parts.signal,
  }
}

function samplingOf({ stop, topP, topK, seed, frequencyPenalty, presencePenalty }: ModelRequest): Partial<CallOptions> {
  return {
    ...(stop === undefined || stop.length === 0 ? {} : { stopSequences: [...stop] }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(seed === undefined ? {} : { seed }),
    ...(frequencyPenalty === undefined ? {} : { frequencyPenalty }),
    ...(presencePenalty === undefined ? {} : { presencePenalty }),
  }
}

function formatOf({ responseFormat, responseSchema, responseSchemaName }: ModelRequest): Partial<CallOptions> {
  if (responseSchema === undefined) return responseFormat === 'json' ? { responseFormat: { type: 'json' } } : {}
  const name = NAME.test(responseSchemaName ?? '') ? responseSchemaName! : 'reply'
  return { responseFormat: { type: 'json', schema: responseSchema, name } }
}

const NAME = /^[\w-]{1,64}$/

const toTool = ({ name, description, parameters, strict, cacheHint }: ToolSpec, version: Version): FunctionTool => ({
  type: 'function',
  name,
  description,
  inputSchema: parameters,
  ...(strict === undefined || version === 'v2' ? {} : { strict }),
  ...optionsOfHint(cacheHint),
})

const toChoice = (choice: ModelRequest['toolChoice'] = 'auto'): ToolChoice =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool }

/** Converts a whole answer to a stream. */
const toStream = (generated: Generated): Streamed => ({ stream: ReadableStream.from(partsOf(generated)) })

const partsOf = ({ content, finishReason, usage, warnings, providerMetadata }: Generated): StreamPart[] => [
  { type: 'stream-start', warnings },
  ...content.flatMap((part, at) => pieces(part, String(at))),
  { type: 'finish', finishReason, usage, providerMetadata },
]

/** Stream parts of one part. Unknown types (files) are ignored. */
function pieces(part: GeneratedPart, id: string): StreamPart[] {
  if (part.type === 'tool-call' || part.type === 'source') return [part]
  if (part.type !== 'text' && part.type !== 'reasoning') return []
  const { type, text, ...rest } = part
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, providerMetadata: rest.providerMetadata },
  ]
}

/** Values of variables with secret names. A package can read its key from such a variable, and its upstream can repeat it. */
const environmentSecrets = (): string[] =>
  Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && SECRET.test(name) ? [value] : []))

const MOST = 100

/** Logs the warnings of a package, each once, at most 100. */
function createWarn(provider: string, log: Log, hide: (text: string) => string): (warnings: readonly Warning[]) => void {
  const logged = new Set<string>()
  return warnings => {
    for (const warning of warnings ?? []) {
      const what = hide(wordsOf(warning))
      if (logged.has(what) || logged.size >= MOST) continue
      logged.add(what)
      log.warn({ provider, warning: what }, 'the package could not apply all options of a request')
    }
  }
}

const wordsOf = ({ type, feature, setting, details, message }: Warning): string =>
  [type, feature, setting, details, message].filter(item => typeof item === 'string').join(': ')

/** Dependencies of `Answer`. */
interface AnswerOptions {
  readonly events: EventStream
  readonly converter: EventReader
  /** Calls the model. The call ends with the signal. */
  readonly ask: (signal: AbortSignal) => ReturnType<LanguageModel['doStream']>
  readonly failureOf: (error: unknown) => Error
}

const STOPPED = new DOMException('the reader has left', 'AbortError')

/** Reads the stream of an answer into events, as fast as the reader takes them. */
class Answer {
  readonly #parts: AnswerOptions
  readonly #ending = new AbortController()
  #reader: ReadableStreamDefaultReader<StreamPart> | undefined
  #paused: PromiseWithResolvers<void> | undefined

  constructor(parts: AnswerOptions) {
    this.#parts = parts
  }

  start(): void {
    const { events, failureOf } = this.#parts
    this.#read().then(
      () => events.end(),
      error => {
        events.end({ reason: failureOf(error) })
        this.stop()
      }
    )
  }

  pause(): void {
    this.#paused ??= Promise.withResolvers<void>()
  }

  resume(): void {
    this.#paused?.resolve()
    this.#paused = undefined
  }

  /** Closes the connection, even if the package ignores the signal. */
  stop(): void {
    this.#ending.abort(STOPPED)
    this.#reader?.cancel(STOPPED).catch(() => {})
    this.resume()
  }

  async #read(): Promise<void> {
    const { ask, events, converter } = this.#parts
    const { stream } = await ask(this.#ending.signal)
    const reader = stream.getReader()
    this.#reader = reader
    if (this.#ending.signal.aborted) return this.stop()
    for (let item = await reader.read(); !item.done; item = await reader.read()) {
      converter.take(item.value)
      if (this.#paused) await this.#paused.promise
      if (events.over) return
    }
    converter.end()
  }
}

// --- embeddings ---

/** The models for embeddings of an entry. */
interface Embedder {
  /** Name of the entry. */
  readonly name: string
  readonly providerOptions: Metadata | undefined
  readonly makeEmbedding: (id: string) => EmbeddingModel
}

/** Makes embeddings, in as many calls as the package needs. */
async function embedTexts(embedder: Embedder, request: EmbedRequest, ctx: CallContext): Promise<EmbedReply> {
  const { name, makeEmbedding, providerOptions } = embedder
  const { dimensions } = request
  const texts = textsOf(name, request)
  const model = makeEmbedding(request.model)
  const own = dimensions === undefined ? undefined : dimensionOptions(dimensions, model.specificationVersion, model.provider)
  const options = mergeMetadata(own, providerOptions)
  const most = sizeOf(await model.maxEmbeddingsPerCall, texts.length)
  const vectors: unknown[] = []
  let input = 0
  for (let from = 0; from < texts.length; from += most) {
    const values = texts.slice(from, from + most)
    const { embeddings, usage } = await model.doEmbed({
      values,
      ...(dimensions === undefined || model.specificationVersion !== 'v4' ? {} : { dimensions }),
      ...(options === undefined ? {} : { providerOptions: options }),
      headers: headersOf(ctx),
      abortSignal: ctx.signal,
    })
    if (!Array.isArray(embeddings) || embeddings.length !== values.length) throw malformed(name)
    vectors.push(...(embeddings as unknown[]))
    input += Number.isSafeInteger(usage?.tokens) && Number(usage?.tokens) >= 0 ? Number(usage?.tokens) : 0
  }
  return embedReply(name, request, vectors, { input, output: 0 })
}

/** Number of texts in a call. A package can name none, or infinitely many. */
const sizeOf = (most: number | undefined, count: number): number =>
  Math.max(1, most !== undefined && most >= 1 && most < count ? Math.trunc(most) : count)

/** Headers that connect the log of the upstream with the log of svc. */
const headersOf = (ctx: Pick<CallContext, 'requestId' | 'trace' | 'traceState'>): Record<string, string> => ({
  'x-request-id': ctx.requestId,
  ...traceHeaders(ctx),
})
