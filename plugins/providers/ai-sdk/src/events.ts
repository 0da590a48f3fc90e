import type {
  Citation,
  FinishReason,
  Json,
  ModelEvent,
  ReasoningPart,
  TokenLogprob,
  ToolCallPart,
  Usage,
} from '@svc/core/contracts'
import {
  mergeMetadata,
  type Metadata,
  plainMetadata,
  type SdkFinish,
  type SdkUsage,
  type Source,
  type StreamPart,
  type Warning,
  writeTextData,
} from './sdk.ts'

/** Dependencies of `createEvents`. */
export interface EventsOptions {
  readonly emit: (event: ModelEvent) => void
  readonly warn: (warnings: readonly Warning[]) => void
  /** Converts an error inside the stream to a failure. */
  readonly failureOf: (error: unknown) => Error
  /** Creates the failure of an answer that ends early. */
  readonly cut: () => Error
  /** Also emits the arguments of tool calls while they arrive. */
  readonly deltas?: boolean
  /** The texts of `stop`. */
  readonly stops?: readonly string[]
  /** Number of alternatives of each token, if the caller asks for log probabilities. */
  readonly logprobs?: number | undefined
}

/** Turns the stream parts of one answer into events. */
export interface EventReader {
  /** Converts a part. Throws the failure of an error part. */
  take(part: StreamPart): void
  /** Runs at the end of the stream. Throws if the answer is incomplete. */
  end(): void
}

type Takers = { readonly [T in StreamPart['type']]: (part: Extract<StreamPart, { type: T }>) => void }

/** Creates the events of one answer. Parts of unknown types (files, raw chunks) are ignored. */
export function createEvents({ emit, warn, failureOf, cut, deltas = false, stops = [], logprobs }: EventsOptions): EventReader {
  const [calls, reasoning, texts] = [new Calls(deltas), new Reasoning(), new Texts()]
  let finished = false
  const other = (event: ModelEvent) => {
    texts.close()
    emit(event)
  }
  const { called, ended } = orderCalls(emit, other, logprobs)
  const takers: Takers = {
    'stream-start': part => warn(part.warnings),
    'text-start': part => texts.about(part.providerMetadata),
    'text-delta': part => {
      if (part.delta === '') return
      texts.open()
      emit({ type: 'text', text: part.delta })
    },
    'text-end': part => texts.about(part.providerMetadata),
    'reasoning-start': part => reasoning.take(part.id, part, false, other),
    'reasoning-delta': part => reasoning.take(part.id, part, false, other),
    'reasoning-end': part => reasoning.take(part.id, part, true, other),
    'tool-input-start': part => calls.begin(part.id, part.toolName, part.providerExecuted ?? false),
    'tool-input-delta': part => {
      if (!calls.add(part.id, part.delta, called)) emit(ALIVE)
    },
    'tool-input-end': () => {},
    'tool-call': part => calls.whole(part, called),
    source(part) {
      const citation = citationOf(part)
      // A source between two pieces of a text does not end the text.
      if (citation) emit({ type: 'citation', citation })
    },
    finish({ finishReason, usage, providerMetadata }) {
      const word = wordOf(finishReason)
      if (CUT.has(word)) throw cut()
      reasoning.end(other)
      calls.end(called, word === 'length')
      ended(providerMetadata)
      const spent = toUsage(usage)
      if (spent) emit({ type: 'usage', usage: spent })
      const data = texts.data()
      const reason = calls.any ? 'tool_calls' : (REASONS[word] ?? 'stop')
      const stopText = reason === 'stop' ? stops.find(stop => stop === stopSequenceIn(providerMetadata)) : undefined
      emit(finishEvent(reason, stopText, data))
      finished = true
    },
    error: part => {
      throw failureOf(part.error)
    },
  }
  return {
    take(part) {
      if (!finished && Object.hasOwn(takers, part.type)) takers[part.type](part as never)
    },
    end() {
      if (!finished) throw cut()
    },
  }
}

const finishEvent = (reason: FinishReason, stopText: string | undefined, data: Json | undefined): ModelEvent => ({
  type: 'finish',
  reason,
  ...(stopText === undefined ? {} : { stopText }),
  ...(data === undefined ? {} : { providerData: data }),
})

/** Anthropic's package names the text at which the answer ended. */
const stopSequenceIn = (metadata: Metadata | undefined): unknown => metadata?.anthropic?.stopSequence

type EmitEvent = (event: ModelEvent) => void

/**
 * Log probabilities come with the end of an answer, and follow their text: tool calls wait for them. `other` emits an event that
 * ends a text.
 */
function orderCalls(emit: EmitEvent, other: EmitEvent, logprobs: number | undefined) {
  const waiting: ModelEvent[] = []
  return {
    called: (event: ModelEvent): void => {
      if (logprobs === undefined) return other(event)
      waiting.push(event)
      emit(ALIVE)
    },
    ended: (metadata: Metadata | undefined): void => {
      const tokens = logprobs === undefined ? [] : tokensOf(metadata, logprobs)
      if (tokens.length > 0) other({ type: 'logprobs', tokens })
      waiting.forEach(other)
    },
  }
}

/** The log probabilities that OpenAI's package collects: a list of tokens, or of such lists. */
function tokensOf(metadata: Metadata | undefined, top: number): readonly TokenLogprob[] {
  const listed: unknown = metadata?.openai?.logprobs
  return Array.isArray(listed) ? (listed as unknown[]).flat().flatMap(entry => tokenOf(entry, top)) : []
}

function tokenOf(entry: unknown, top: number): TokenLogprob[] {
  const { token, logprob, top_logprobs: others } = Object(entry) as Readonly<Record<string, unknown>>
  if (typeof token !== 'string' || typeof logprob !== 'number') return []
  const listed = Array.isArray(others) ? (others as unknown[]).slice(0, top).flatMap(other => tokenOf(other, 0)) : []
  return [{ token, logprob, ...(top === 0 ? {} : { top: listed }) }]
}

/** A package can pass anything on that its upstream sends. */
function citationOf(source: Source): Citation | undefined {
  const { url, title } = source as { readonly url?: unknown; readonly title?: unknown }
  const citation = { ...(typeof url === 'string' ? { url } : {}), ...(typeof title === 'string' ? { title } : {}) }
  return Object.keys(citation).length > 0 ? citation : undefined
}

/** Shows activity while a model writes long arguments. */
const ALIVE: ModelEvent = { type: 'reasoning', text: '' }

/** Finish reasons of packages for a body that stopped without a reason. */
const CUT: ReadonlySet<string> = new Set(['interrupted', 'error', 'unknown', ''])
const REASONS: Readonly<Record<string, FinishReason>> = { stop: 'stop', length: 'length', 'content-filter': 'content_filter' }

/** The reason as one word; empty if the upstream sent none. */
function wordOf(finish: SdkFinish | undefined): string {
  if (typeof finish === 'string') return finish
  return finish?.unified === 'other' && finish.raw === undefined ? '' : (finish?.unified ?? '')
}

/** The metadata of each run of text, in order, because text parts cannot carry it. */
class Texts {
  readonly #metadata: (Metadata | undefined)[] = []
  #ahead: Metadata | undefined
  #open = false

  open(): void {
    if (!this.#open) this.#metadata.push(this.#ahead)
    this.#open = true
    this.#ahead = undefined
  }

  close(): void {
    this.#open = false
  }

  about(metadata: Metadata | undefined): void {
    const data = plainMetadata(metadata)
    if (!this.#open) this.#ahead = data
    else this.#metadata.push(mergeMetadata(this.#metadata.pop(), data))
  }

  data() {
    return writeTextData(this.#metadata)
  }
}

type Emit = (piece: ReasoningPart) => void

interface Block {
  text: string
  data: Metadata | undefined
  ended: boolean
}

/**
 * The reasoning of an answer, block by block: first the text of a block, then an empty piece with its data, if any. Blocks can overlap; a later block
 * waits for the end of the block before it.
 */
class Reasoning {
  readonly #blocks = new Map<string, Block>()

  /** Takes the start, more text or the end of a block. Each can bring data. */
  take(
    id: string,
    part: { readonly delta?: string; readonly providerMetadata?: Metadata | undefined },
    ended: boolean,
    emit: Emit
  ): void {
    const block = this.#blocks.get(id) ?? { text: '', data: undefined, ended: false }
    this.#blocks.set(id, block)
    block.text += part.delta ?? ''
    block.data = mergeMetadata(block.data, plainMetadata(part.providerMetadata))
    block.ended = ended
    this.#flush(emit)
  }

  end(emit: Emit): void {
    for (const block of this.#blocks.values()) block.ended = true
    this.#flush(emit)
  }

  #flush(emit: Emit): void {
    for (const [id, block] of this.#blocks) {
      if (block.text !== '') emit({ type: 'reasoning', text: block.text })
      block.text = ''
      if (!block.ended) return
      if (block.data !== undefined) emit({ type: 'reasoning', text: '', providerData: block.data })
      this.#blocks.delete(id)
    }
  }
}

type WholeCall = Extract<StreamPart, { type: 'tool-call' }>

interface Begun {
  readonly tool: string
  readonly index: number
  text: string
  whole?: ToolCallPart
}

/** Emits the tool calls of an answer in the order in which they began. It ignores tools that the provider runs itself. */
class Calls {
  readonly #begun = new Map<string, Begun>()
  readonly #foreign = new Set<string>()
  readonly #deltas: boolean
  #emitted = 0

  constructor(deltas: boolean) {
    this.#deltas = deltas
  }

  get any(): boolean {
    return this.#emitted > 0
  }

  begin(id: string, tool: string, isForeign: boolean): void {
    if (isForeign) this.#foreign.add(id)
    else this.#begun.set(id, { tool, text: '', index: this.#emitted + this.#begun.size })
  }

  /** Adds a piece of the arguments. Returns true if it emitted the piece. */
  add(id: string, delta: string, emit: EmitEvent): boolean {
    const call = this.#begun.get(id)
    if (!call) return false
    call.text += delta
    if (!this.#deltas || delta === '') return false
    emit({ type: 'tool_call_delta', index: call.index, id, tool: call.tool, text: delta })
    return true
  }

  whole(part: WholeCall, emit: EmitEvent): void {
    const id = part.toolCallId || `call_${this.#emitted + this.#begun.size + 1}`
    if (part.providerExecuted || this.#foreign.has(id)) return
    const call = this.#begun.get(id) ?? { tool: part.toolName, text: '', index: this.#emitted + this.#begun.size }
    // The package sent no pieces, so there is one.
    if (this.#deltas && call.text === '' && part.input !== '')
      emit({ type: 'tool_call_delta', index: call.index, id, tool: call.tool, text: part.input })
    const data = plainMetadata(part.providerMetadata)
    call.whole = { ...toCall(id, part.toolName, part.input), ...(data === undefined ? {} : { providerData: data }) }
    this.#begun.set(id, call)
    this.#flush(emit)
  }

  /** Runs at the end of the answer. Packages of version 2 drop calls with invalid JSON arguments; this method emits them with the text of the model. */
  end(emit: EmitEvent, isCut: boolean): void {
    for (const [id, call] of this.#begun) if (!isCut) call.whole ??= toCall(id, call.tool, call.text)
    for (const [id, call] of this.#begun) if (!call.whole) this.#begun.delete(id)
    this.#flush(emit)
  }

  #flush(emit: EmitEvent): void {
    for (const [id, { whole }] of this.#begun) {
      if (!whole) return
      this.#begun.delete(id)
      this.#emitted++
      emit(whole)
    }
  }
}

function toCall(id: string, tool: string, text: string): ToolCallPart {
  const args = readObject(text.trim() === '' ? '{}' : text)
  return { type: 'tool_call', id, tool, arguments: args ?? {}, ...(args === undefined ? { invalid: text } : {}) }
}

function readObject(text: string): ToolCallPart['arguments'] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as { [name: string]: Json }) : undefined
  } catch {
    return undefined
  }
}

/** Converts the usage of any version; `undefined` if the upstream reported none. */
function toUsage(usage: SdkUsage | undefined): Usage | undefined {
  const { input, output, cached, cacheWrite, reasoning } = flat(usage ?? { inputTokens: undefined, outputTokens: undefined })
  if (count(input) === undefined && count(output) === undefined) return undefined
  const [whole, written] = [count(input) ?? 0, count(output) ?? 0]
  const read = count(cached) ?? 0
  const stored = Math.min(count(cacheWrite) ?? 0, Math.max(whole - read, 0))
  return {
    input: whole,
    output: written,
    ...part('cached', cached, whole),
    ...(stored > 0 ? { cacheWrite: stored } : {}),
    ...part('reasoning', reasoning, written),
  }
}

function flat(usage: SdkUsage) {
  const { inputTokens, outputTokens } = usage
  const input = typeof inputTokens === 'object' ? inputTokens : undefined
  const output = typeof outputTokens === 'object' ? outputTokens : undefined
  const old = 'cachedInputTokens' in usage || 'reasoningTokens' in usage ? usage : undefined
  return {
    input: input ? input.total : inputTokens,
    output: output ? output.total : outputTokens,
    cached: input ? input.cacheRead : old?.cachedInputTokens,
    cacheWrite: input?.cacheWrite,
    reasoning: output ? output.reasoning : old?.reasoningTokens,
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined

/** Limits a part of a count to the whole, because some upstreams count more. */
function part<N extends 'cached' | 'reasoning'>(name: N, value: unknown, whole: number): { readonly [K in N]?: number } {
  const tokens = count(value)
  return tokens === undefined ? {} : ({ [name]: Math.min(tokens, whole) } as { readonly [K in N]?: number })
}
