import { randomUUID } from 'node:crypto'
import type {
  FinishReason,
  Json,
  ModelCallEnd,
  ModelEvent,
  ReasoningPart,
  TextPart,
  TokenLogprob,
  ToolCallPart,
  Usage,
} from '@svc/core/contracts'
import { OpaquePacker } from './opaque.ts'

/** What an answer is written for. */
export interface AnswerFor {
  /** The model as the client named it. */
  readonly model: string
  /** Whether the client sees thoughts. */
  readonly hasThoughts: boolean
}

/** A part of an answer. */
export interface WirePart {
  readonly text?: string
  readonly thought?: true
  readonly functionCall?: {
    readonly id: string
    readonly name: string
    readonly args: Readonly<Record<string, Json | undefined>>
  }
  readonly thoughtSignature?: string
}

const FINISHES: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  content_filter: 'SAFETY',
}

/** The tokens of an answer. Thoughts are beside the tokens of the candidates. */
const usageOf = ({ input, output, cached, reasoning = 0 }: Usage) => ({
  promptTokenCount: input,
  ...(cached === undefined ? {} : { cachedContentTokenCount: cached }),
  candidatesTokenCount: Math.max(0, output - reasoning),
  ...(reasoning === 0 ? {} : { thoughtsTokenCount: reasoning }),
  totalTokenCount: input + output,
})

const tokenOf = ({ token, logprob }: Pick<TokenLogprob, 'token' | 'logprob'>) => ({ token, logProbability: logprob })

const logprobsOf = (tokens: readonly TokenLogprob[]) => ({
  logprobsResult: {
    topCandidates: tokens.map(one => ({ candidates: (one.top ?? [one]).map(tokenOf) })),
    chosenCandidates: tokens.map(tokenOf),
  },
})

type Citation = Extract<ModelEvent, { type: 'citation' }>['citation']

const sourcesOf = (sources: readonly Citation[]) =>
  sources.length === 0
    ? {}
    : { groundingMetadata: { groundingChunks: sources.map(({ url, title }) => ({ web: { uri: url, title: title ?? url } })) } }

/** The end of the answer of a refused request. */
const BLOCKED = { promptFeedback: { blockReason: 'OTHER' } } as const

/** Makes the parts and responses of one answer from the events of its call. */
class AnswerParts {
  readonly #packer = new OpaquePacker()
  readonly #ids = new Set<string>()
  readonly #hasThoughts: boolean
  readonly #provider: string
  readonly sources: Citation[] = []
  isRefused = false

  constructor(provider: string, { hasThoughts }: AnswerFor) {
    this.#provider = provider
    this.#hasThoughts = hasThoughts
  }

  /** The part of an event; `undefined` if it has none. */
  take(event: ModelEvent): WirePart | undefined {
    if (event.type === 'text') return this.#say(event)
    if (event.type === 'reasoning') return this.#think(event)
    if (event.type === 'tool_call')
      return { functionCall: this.#callOf(event), ...this.#packer.take(this.#provider, 'call', event.providerData) }
    if (event.type === 'citation' && event.citation.url !== undefined) this.sources.push(event.citation)
    return event.type === 'finish' ? this.#finish(event) : undefined
  }

  #say({ text, refusal }: TextPart): WirePart | undefined {
    if (refusal) this.isRefused = true
    return text === '' ? undefined : { text, ...this.#packer.take(this.#provider) }
  }

  #think({ text, providerData }: ReasoningPart): WirePart | undefined {
    this.#packer.reasoning(text, providerData)
    return text === '' || !this.#hasThoughts ? undefined : { text, thought: true }
  }

  /** The data that is left goes with an empty thought. */
  #finish({ providerData }: Extract<ModelEvent, { type: 'finish' }>): WirePart | undefined {
    const signed = this.#packer.take(this.#provider, 'message', providerData)
    return signed.thoughtSignature === undefined ? undefined : { text: '', thought: true, ...signed }
  }

  /** A tool call. Arguments that are not JSON stay readable: the client's check of them fails. */
  #callOf({ id, tool, arguments: args, invalid }: ToolCallPart) {
    const shownId = id === '' || this.#ids.has(id) ? `call_${randomUUID().replaceAll('-', '')}` : id
    this.#ids.add(shownId)
    return { id: shownId, name: tool, args: invalid === undefined ? args : { invalid_json: invalid } }
  }

  finishOf(finish: FinishReason | undefined): string {
    return this.isRefused ? FINISHES.content_filter : FINISHES[finish ?? 'stop']
  }
}

type Ended = Pick<ModelCallEnd, 'finish' | 'usage'>

/** Gathers the events of a call into one response. */
export class WholeResponse {
  readonly #for: AnswerFor
  #answer: AnswerParts
  #parts: WirePart[] = []
  #tokens: TokenLogprob[] = []

  constructor(answerFor: AnswerFor) {
    this.#for = answerFor
    this.#answer = new AnswerParts('', answerFor)
  }

  /** Begins another attempt. */
  begin(provider: string): void {
    this.#answer = new AnswerParts(provider, this.#for)
    this.#parts = []
    this.#tokens = []
  }

  take(event: ModelEvent): void {
    if (event.type === 'logprobs') this.#tokens.push(...event.tokens)
    const part = this.#answer.take(event)
    if (!part) return
    const last = this.#parts.at(-1)
    if (last && isJoined(last, part)) this.#parts[this.#parts.length - 1] = { ...last, text: `${last.text}${part.text}` }
    else this.#parts.push(part)
  }

  wire({ finish, usage }: Ended): object {
    return {
      candidates: [
        {
          content: { parts: this.#parts, role: 'model' },
          finishReason: this.#answer.finishOf(finish),
          index: 0,
          ...sourcesOf(this.#answer.sources),
          ...(this.#tokens.length === 0 ? {} : logprobsOf(this.#tokens)),
        },
      ],
      usageMetadata: usageOf(usage),
      modelVersion: this.#for.model,
      responseId: randomUUID(),
    }
  }
}

/** Whether a part goes on with the text of the last one. A signature belongs to its part alone. */
const isJoined = (last: WirePart, part: WirePart) =>
  last.text !== undefined && part.text !== undefined && last.thought === part.thought && part.thoughtSignature === undefined

/** The response to a request that the model refuses to answer. */
export const blockedResponse = ({ model }: AnswerFor): object => ({
  ...BLOCKED,
  usageMetadata: usageOf({ input: 0, output: 0 }),
  modelVersion: model,
  responseId: randomUUID(),
})

/** Writes the responses of a stream, as JSON: each has the new parts of the answer. */
export class ResponseChunks {
  readonly #answer: AnswerParts
  readonly #for: AnswerFor
  /** The JSON before and after the text of a part that has nothing else. Most chunks are such. */
  readonly #head = '{"candidates":[{"content":{"parts":[{"text":'
  readonly #tail: string
  readonly #rest: { readonly modelVersion: string; readonly responseId: string }
  #hasBegun = false

  constructor(provider: string, answerFor: AnswerFor) {
    this.#for = answerFor
    this.#answer = new AnswerParts(provider, answerFor)
    this.#rest = { modelVersion: answerFor.model, responseId: randomUUID() }
    this.#tail = `}],"role":"model"},"index":0}],${JSON.stringify(this.#rest).slice(1)}`
  }

  /** The response of an event; `undefined` if it has none. */
  take(event: ModelEvent): string | undefined {
    if (event.type === 'logprobs') return this.#chunk(logprobsOf(event.tokens))
    const part = this.#answer.take(event)
    if (!part) return undefined
    this.#hasBegun = true
    if (part.text !== undefined && part.thought === undefined && part.thoughtSignature === undefined)
      return this.#head + JSON.stringify(part.text) + this.#tail
    return this.#chunk({ content: { parts: [part], role: 'model' } })
  }

  end({ finish, usage }: Ended): string {
    const candidate = { finishReason: this.#answer.finishOf(finish), ...sourcesOf(this.#answer.sources) }
    return this.#chunk(candidate, { usageMetadata: usageOf(usage) })
  }

  /** The end of an answer that the model refuses to give. */
  refuse(): string {
    if (!this.#hasBegun) return JSON.stringify(blockedResponse(this.#for))
    return this.end({ finish: 'content_filter', usage: { input: 0, output: 0 } })
  }

  #chunk(candidate: object, more: object = {}): string {
    return JSON.stringify({ candidates: [{ ...candidate, index: 0 }], ...more, ...this.#rest })
  }
}
