import { type CallContext, type Log, SECRET, type SvcError } from '@svc/core'
import type { ModelRequest, Provider, ToolSpec } from '@svc/core/contracts'
import {
  type ConfiguredModel,
  createHide,
  cutShort,
  entryProblems,
  estimateTokens,
  EventStream,
  modelList,
  readKey,
  secretsOf,
} from '@svc/provider-http'
import type { AiSdkConfig } from './config.ts'
import { packageMissing, secretOption } from './errors.ts'
import { createEvents, type Events } from './events.ts'
import { createFailures, type Failures } from './failure.ts'
import { createGuardedFetch, type GuardedFetch } from './fetch.ts'
import { findPackage, openPackage, type Packages } from './package.ts'
import { toPrompt } from './prompt.ts'
import type {
  CallOptions,
  FunctionTool,
  Generated,
  GeneratedPart,
  LanguageModel,
  Metadata,
  Streamed,
  StreamPart,
  ToolChoice,
  Version,
  Warning,
} from './sdk.ts'

/** What the schema cannot tell: secrets where none may stand, a package that is not there, a key that is missing. */
export async function checkConfig(name: string, config: AiSdkConfig, places: Packages['places']): Promise<readonly SvcError[]> {
  const secret = secretIn(config.options, 'options') ?? secretIn(config.provider_options, 'provider_options')
  return [
    ...(secret === undefined ? [] : [secretOption(secret)]),
    ...(findPackage(config.package, places) ? [] : [packageMissing(config.package)]),
    ...(await entryProblems(readKey(config, { provider: name, required: false }))),
  ]
}

/** The path of what has a secret's name and a value. */
function secretIn(value: unknown, path: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, inner] of Object.entries(value)) {
    const found = isSecretValue(name, inner) ? `${path}.${name}` : secretIn(inner, `${path}.${name}`)
    if (found !== undefined) return found
  }
  return undefined
}

const isSecretValue = (name: string, value: unknown) =>
  typeof value === 'string' && (SECRET.test(name) || /[a-z](Key|Token|Secret|Password)$/.test(name))

/** What an entry is opened with. */
export interface OpenParts {
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

/** Opens an entry: reads its key, loads its package, makes its provider. Throws PROVIDER_KEY, PROVIDER_CONFIG, PROVIDER_PACKAGE. */
export async function openProvider(parts: OpenParts): Promise<Opened> {
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
  const makeModel = await openPackage({ package: config.package, export: config.export, options, model, hide }, packages)
  const note = (words: string) => log.warn({ provider: name, words }, 'the package of a provider failed')
  const failures = createFailures({ provider: name, hide, note })
  const warn = createWarn(name, log, hide)
  const provider = createAiSdkProvider({ name, models, providerOptions, upstream, signal, makeModel, failures, warn })
  return { provider, close: () => upstream.close() }
}

/** What a provider is made of. */
interface AiSdkParts {
  /** Name of the entry. */
  readonly name: string
  /** Those of the configuration; without them any id is passed on. */
  readonly models: readonly ConfiguredModel[] | undefined
  readonly providerOptions: Metadata | undefined
  readonly upstream: GuardedFetch
  /** The plugin's. */
  readonly signal: AbortSignal
  readonly makeModel: (id: string) => LanguageModel
  readonly failures: Failures
  readonly warn: (warnings: readonly Warning[]) => void
}

/** The models of an AI SDK package as a provider of ours. */
function createAiSdkProvider(parts: AiSdkParts): Provider {
  const { name, models, providerOptions, upstream, signal, makeModel, failures, warn } = parts
  return {
    features: { tool_calling: true, streaming: true, vision: true },
    models: modelList({ configured: models, load: async () => [], open: true, signal }),
    async countTokens(request, ctx) {
      ctx.signal.throwIfAborted()
      return estimateTokens(request)
    },
    chat(request: ModelRequest, ctx) {
      const events = new EventStream(ctx.signal)
      const taken = createEvents({ emit: events.push, warn, failureOf: failures.streamed, cut: () => cutShort(name) })
      const ask = async (ending: AbortSignal) => {
        const model = makeModel(request.model)
        const call = { version: model.specificationVersion, provider: name, providerOptions, signal: ending }
        const options = toCallOptions(request, call, ctx)
        return request.gathered && model.doGenerate ? toStream(await model.doGenerate(options)) : model.doStream(options)
      }
      return events.from(new Answer({ events, taken, ask, failureOf: failures.thrown }))
    },
    probe: ctx => upstream.probe(ctx.signal),
  }
}

/** What a call needs besides the request. */
interface CallParts {
  readonly version: Version
  /** Name of the entry: which messages are its own. */
  readonly provider: string
  /** Options for each call, by the provider's name in the SDK. */
  readonly providerOptions?: Metadata | undefined
  readonly signal: AbortSignal
}

/** A request as the options of `doStream`. */
function toCallOptions(
  request: ModelRequest,
  parts: CallParts,
  ctx: Pick<CallContext, 'requestId' | 'trace' | 'traceState'>
): CallOptions {
  const { temperature, maxTokens, tools = [], toolChoice, responseSchema } = request
  return {
    prompt: toPrompt(request.messages, parts.version, parts.provider),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(tools.length === 0 ? {} : { tools: tools.map(toTool), toolChoice: toChoice(toolChoice) }),
    ...(responseSchema === undefined ? {} : { responseFormat: { type: 'json', schema: responseSchema, name: 'reply' } }),
    ...(parts.providerOptions === undefined ? {} : { providerOptions: parts.providerOptions }),
    headers: {
      'x-request-id': ctx.requestId,
      ...(ctx.trace === undefined ? {} : { traceparent: ctx.trace }),
      ...(ctx.traceState === undefined ? {} : { tracestate: ctx.traceState }),
    },
    abortSignal: parts.signal,
  }
}

const toTool = ({ name, description, parameters }: ToolSpec): FunctionTool => ({
  type: 'function',
  name,
  description,
  inputSchema: parameters,
})

const toChoice = (choice: ModelRequest['toolChoice'] = 'auto'): ToolChoice =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool }

/** A whole answer as the stream it could have been. */
const toStream = (generated: Generated): Streamed => ({ stream: ReadableStream.from(partsOf(generated)) })

const partsOf = ({ content, finishReason, usage, warnings }: Generated): StreamPart[] => [
  { type: 'stream-start', warnings },
  ...content.flatMap((part, at) => pieces(part, String(at))),
  { type: 'finish', finishReason, usage },
]

/** Parts of unknown types (sources, files) are passed over, as in a stream. */
function pieces(part: GeneratedPart, id: string): StreamPart[] {
  if (part.type === 'tool-call') return [part]
  if (part.type !== 'text' && part.type !== 'reasoning') return []
  const { type, text, ...told } = part
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, providerMetadata: told.providerMetadata },
  ]
}

/** Values of environment variables that are called like secrets: a package may read its key from one by itself, and its upstream may repeat it. */
const environmentSecrets = (): string[] =>
  Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && SECRET.test(name) ? [value] : []))

const MOST = 100

/** Tells the log what a package could not do as asked: each thing once, and no more than a hundred things. */
function createWarn(provider: string, log: Log, hide: (text: string) => string): (warnings: readonly Warning[]) => void {
  const told = new Set<string>()
  return warnings => {
    for (const warning of warnings ?? []) {
      const what = hide(wordsOf(warning))
      if (told.has(what) || told.size >= MOST) continue
      told.add(what)
      log.warn({ provider, warning: what }, 'the package does not do all that it was asked')
    }
  }
}

const wordsOf = ({ type, feature, setting, details, message }: Warning): string =>
  [type, feature, setting, details, message].filter(one => typeof one === 'string').join(': ')

/** What one answer is read with. */
interface AnswerParts {
  readonly events: EventStream
  readonly taken: Events
  /** Asks the model; what it opens ends with the signal. */
  readonly ask: (signal: AbortSignal) => ReturnType<LanguageModel['doStream']>
  readonly failureOf: (error: unknown) => Error
}

const STOPPED = new DOMException('nobody reads any more', 'AbortError')

/** Reads the stream of a model's answer into events, as fast as they are taken. */
class Answer {
  readonly #parts: AnswerParts
  readonly #ending = new AbortController()
  #reader: ReadableStreamDefaultReader<StreamPart> | undefined
  #paused: PromiseWithResolvers<void> | undefined

  constructor(parts: AnswerParts) {
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

  /** Closes the connection, also of a package that heeds no signal. */
  stop(): void {
    this.#ending.abort(STOPPED)
    this.#reader?.cancel(STOPPED).catch(() => {})
    this.resume()
  }

  async #read(): Promise<void> {
    const { ask, events, taken } = this.#parts
    const { stream } = await ask(this.#ending.signal)
    const reader = stream.getReader()
    this.#reader = reader
    if (this.#ending.signal.aborted) return this.stop()
    for (let one = await reader.read(); !one.done; one = await reader.read()) {
      taken.take(one.value)
      if (this.#paused) await this.#paused.promise
      if (events.over) return
    }
    taken.end()
  }
}
