import type { FinishReason, Json, ModelEvent, ModelRequest, TokenLogprob } from '@svc/core/contracts'
import {
  countIn,
  cutShort,
  type FrameReader,
  isTree,
  malformed,
  nativeOf,
  ToolCalls,
  type Tree,
  type Upstream,
  ofChoice,
  tooFewAnswers,
} from '@svc/provider-http'
import {
  cite,
  type Emit,
  takePieces,
  tokenOf,
  usageOf,
  type WireCall,
  type WireChoice,
  type WireChunk,
  type WireDelta,
  type WireUsage,
} from './chunk.ts'
import type { Preset } from './presets.ts'

const REASONS: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos: 'stop',
  length: 'length',
  model_length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
}
/** Finish reasons that mean a server failure. */
const BROKEN = new Set(['error', 'insufficient_system_resource'])

/** Reads the chunks of one call, or one whole answer: one answer, or as many as `n` asks for. */
export class ChunkReader implements FrameReader {
  readonly #provider: string
  readonly #failed: Upstream['failed']
  readonly #first: ChoiceReader
  readonly #others: readonly ChoiceReader[]
  /** Undefined if chunks contain more than text: those of several answers. */
  readonly #template: TextTemplate | undefined
  readonly #isNative: boolean
  #usage: WireUsage | undefined
  done = false

  constructor(provider: string, preset: Preset, upstream: Pick<Upstream, 'failed'>, request: ModelRequest) {
    this.#provider = provider
    this.#failed = (status, body) => upstream.failed(status, body)
    const [first, ...others] = Array.from({ length: request.n ?? 1 }, () => new ChoiceReader(provider, preset, request))
    this.#first = first!
    this.#others = others
    this.#isNative = nativeOf(request, preset.protocol) !== undefined
    this.#template = others.length > 0 ? undefined : new TextTemplate()
  }

  frame(data: string, event: string, emit: Emit): void {
    if (data === '[DONE]') {
      this.done = true
      return
    }
    const text = event === 'error' ? undefined : this.#template?.read(data)
    if (text !== undefined) {
      if (this.#isNative) emit({ type: 'native', data: this.#template!.chunkOf(text) as Json })
      if (text !== '') emit({ type: 'text', text })
      return
    }
    const chunk = JSON.parse(data) as WireChunk
    if (chunk.error || event === 'error') throw this.#failed(200, chunk)
    if (this.#isNative) emit({ type: 'native', data: chunk as Json })
    this.#take(chunk, emit)
    this.#template?.learn(data, chunk)
  }

  whole(body: unknown, emit: Emit): void {
    const { choices } = isTree(body) ? (body as WireChunk) : {}
    if (!Array.isArray(choices) || !isTree(choices[0]?.message)) throw malformed(this.#provider)
    if (this.#isNative) emit({ type: 'native', data: body as Json })
    this.#take(body as WireChunk, emit)
  }

  end(emit: Emit): void {
    for (const [at, choice] of this.#others.entries()) this.#endChoice(choice, ofChoice(at + 1, emit))
    const reason = this.#reasonOf(this.#first)
    this.#first.emitCalls(reason, emit)
    if (this.#usage) emit({ type: 'usage', usage: usageOf(this.#usage) })
    emit(this.#first.finish(reason))
  }

  #endChoice(choice: ChoiceReader, emit: Emit): void {
    const reason = this.#reasonOf(choice)
    choice.emitCalls(reason, emit)
    emit(choice.finish(reason))
  }

  #reasonOf(choice: ChoiceReader): FinishReason {
    if (!choice.begun && this.#others.length > 0) throw tooFewAnswers(this.#provider, this.#others.length + 1)
    if (choice.reported === undefined && !this.done) throw cutShort(this.#provider)
    if (BROKEN.has(choice.reported ?? ''))
      throw this.#failed(200, { error: { message: 'the model stopped with an error', code: 'server_error' } })
    return choice.reason()
  }

  #take(chunk: WireChunk, emit: Emit): void {
    const choices = Array.isArray(chunk.choices) ? chunk.choices : []
    if (this.#others.length === 0) {
      if (isTree(choices[0])) this.#first.take(choices[0] as WireChoice, emit)
    } else for (const choice of choices as readonly unknown[]) this.#takeOne(choice, emit)
    const usage = chunk.usage ?? chunk.x_groq?.usage
    if (usage) this.#usage = usage
  }

  #takeOne(choice: unknown, emit: Emit): void {
    const index = countIn(choice, 'index') ?? 0
    if (!isTree(choice) || index > this.#others.length) throw malformed(this.#provider)
    if (index === 0) this.#first.take(choice as WireChoice, emit)
    else this.#others[index - 1]!.take(choice as WireChoice, ofChoice(index, emit))
  }
}

/** Reads the pieces of one answer. */
class ChoiceReader {
  readonly #provider: string
  readonly #calls: ToolCalls
  readonly #details: ReasoningDetails | undefined
  readonly #stops: readonly string[]
  #refused = false
  #stopText: string | undefined
  begun = false
  /** The finish reason in the words of the server. */
  reported: string | undefined

  constructor(provider: string, preset: Preset, { toolCallDeltas, stop = [] }: ModelRequest) {
    this.#provider = provider
    this.#calls = new ToolCalls(provider, { deltas: toolCallDeltas === true })
    this.#details = preset.reasoningDetails ? new ReasoningDetails() : undefined
    this.#stops = stop
  }

  take(choice: WireChoice, emit: Emit): void {
    this.begun = true
    const delta = choice.delta ?? choice.message
    if (delta) this.#piece(delta, choice.delta ? this.#pieces(delta) : this.#wholeCalls(delta), emit)
    if (isTree(choice.logprobs)) this.#logprobs(choice.logprobs, emit)
    if (typeof choice.finish_reason === 'string' && choice.finish_reason !== '') this.reported = choice.finish_reason
    if (typeof choice.stop_reason === 'string' && this.#stops.includes(choice.stop_reason)) this.#stopText = choice.stop_reason
  }

  /** The finish reason. Some servers report `stop` and call tools anyway. An answer that was cut has incomplete calls, which are dropped. */
  reason(): FinishReason {
    if (this.#refused) return 'content_filter'
    const reported = Object.hasOwn(REASONS, this.reported ?? '') ? REASONS[this.reported ?? '']! : 'stop'
    if (reported === 'length' || reported === 'content_filter') return reported
    return this.#calls.count > 0 ? 'tool_calls' : 'stop'
  }

  emitCalls(reason: FinishReason, emit: Emit): void {
    if (reason === 'tool_calls') this.#calls.emit(emit)
  }

  finish(reason: FinishReason): ModelEvent {
    const details = this.#details?.gathered()
    return {
      type: 'finish',
      reason,
      ...(reason === 'stop' && this.#stopText !== undefined ? { stopText: this.#stopText } : {}),
      ...(details ? { providerData: { reasoning_details: details } } : {}),
    }
  }

  #piece(delta: WireDelta, calls: readonly WireCall[], emit: Emit): void {
    const { content, refusal } = delta
    const reasoning = delta.reasoning_content || delta.reasoning
    if (typeof reasoning === 'string' && reasoning !== '') emit({ type: 'reasoning', text: reasoning })
    if (this.#details && delta.reasoning_details) this.#details.add(delta.reasoning_details)
    if (typeof content === 'string') {
      if (content !== '') emit({ type: 'text', text: content })
    } else if (content) takePieces(this.#list(content), emit)
    if (typeof refusal === 'string' && refusal !== '') this.#refuse(refusal, emit)
    for (const call of calls) this.#call(call, emit)
    if (Array.isArray(delta.annotations)) for (const one of delta.annotations as unknown[]) cite(one, emit)
  }

  #pieces({ tool_calls: calls }: WireDelta): readonly WireCall[] {
    return calls ? this.#list(calls) : []
  }

  /** Whole calls are identified by their position, not by their index. */
  #wholeCalls(message: WireDelta): readonly WireCall[] {
    return this.#pieces(message).map((call, index) => ({ ...call, index }))
  }

  /** The objects of a list. Throws MODEL_FAILED for anything else that a server sends in its place. */
  #list<T extends object>(value: readonly T[]): readonly T[] {
    const isList = Array.isArray(value as unknown) && value.every(one => isTree(one))
    if (!isList) throw malformed(this.#provider)
    return value
  }

  #refuse(text: string, emit: Emit): void {
    this.#refused = true
    emit({ type: 'text', text, refusal: true })
  }

  #call({ index, id, function: wanted }: WireCall, emit: Emit): void {
    const args = wanted?.arguments
    this.#calls.add(
      typeof index === 'number' ? index : undefined,
      {
        ...(typeof id === 'string' ? { id } : {}),
        ...(typeof wanted?.name === 'string' ? { tool: wanted.name } : {}),
        ...(args === undefined || args === null ? {} : { text: typeof args === 'string' ? args : JSON.stringify(args) }),
      },
      emit
    )
  }

  /** A token of a refusal is a token of its text. */
  #logprobs(logprobs: Tree, emit: Emit): void {
    const lists = [logprobs.content, logprobs.refusal].filter(list => Array.isArray(list)) as unknown[][]
    const tokens = lists.flat().map(one => tokenOf(one) ?? malformed(this.#provider))
    for (const token of tokens) if (token instanceof Error) throw token
    if (tokens.length > 0) emit({ type: 'logprobs', tokens: tokens as TokenLogprob[] })
  }
}

/** Learned templates of a stream: its first chunk also has the role, and some servers send chunks that differ in more than their text. */
const MAX_LEARNED = 3
const PROBE = 'probe'

/** The chunks of most streams differ only in their text. Reads the text of such a chunk without parsing the rest of it again. */
class TextTemplate {
  #before = ''
  #after = ''
  #learned = 0
  /** The chunk of the template. */
  #chunk: WireChunk = {}

  /** The text of a chunk that equals the template elsewhere; else `undefined`. */
  read(data: string): string | undefined {
    if (this.#before === '') return undefined
    const end = data.length - this.#after.length
    if (end < this.#before.length || !data.endsWith(this.#after) || !data.startsWith(this.#before)) {
      // OpenAI pads each chunk with a different text, unless the request forbids it
      if (this.#learned === MAX_LEARNED) this.#before = ''
      return undefined
    }
    return parsedText(data.slice(this.#before.length, end))
  }

  /** The whole chunk of a text that `read` returned. */
  chunkOf(content: string): WireChunk {
    const { choices = [] } = this.#chunk
    const [first] = choices
    return { ...this.#chunk, choices: choices.with(0, { ...first, delta: { ...first?.delta, content } }) }
  }

  /** Makes a template of a chunk that has only text. */
  learn(data: string, chunk: WireChunk): void {
    if (this.#learned === MAX_LEARNED) return
    const text = onlyTextOf(chunk)
    if (!text) return
    this.#learned++
    const written = JSON.stringify(text)
    const at = data.indexOf(written)
    const [before, after] = [data.slice(0, at + 1), data.slice(at + written.length - 1)]
    if (at === -1 || onlyTextOf(JSON.parse(before + PROBE + after) as WireChunk) !== PROBE) return
    this.#before = before
    this.#after = after
    this.#chunk = chunk
  }
}

/** Characters that a JSON string has only in an escape, or not at all. */
// oxlint-disable-next-line no-control-regex -- JSON allows no control characters in a string
const SPECIAL = /[\\"\u0000-\u001f]/

/** The text with its escapes resolved; `undefined` if it is not the content of one JSON string. */
function parsedText(text: string): string | undefined {
  if (!SPECIAL.test(text)) return text
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return undefined
  }
}

/** The text of a chunk that has nothing else for the reader. */
function onlyTextOf({ choices, usage, x_groq, error }: WireChunk): string | undefined {
  const { delta, message, finish_reason, logprobs, stop_reason } = choices?.[0] ?? {}
  if (usage || x_groq?.usage || error || finish_reason || message || logprobs || stop_reason) return undefined
  if (!delta || hasMore(delta)) return undefined
  return typeof delta.content === 'string' ? delta.content : undefined
}

const hasMore = ({ refusal, reasoning, reasoning_content, reasoning_details, tool_calls, annotations }: WireDelta): boolean =>
  Boolean(refusal || reasoning || reasoning_content || reasoning_details || tool_calls || annotations)

type Detail = { readonly [name: string]: Json | undefined }

const MOST_CHARACTERS = 1024 * 1024
/** Fields whose text comes in pieces. */
const GROWING = ['text', 'summary', 'data'] as const

/** Assembles blocks of reasoning from pieces. The next request returns them unchanged. */
class ReasoningDetails {
  readonly #blocks: Detail[] = []
  #size = 0

  add(pieces: readonly Json[]): void {
    for (const piece of pieces) if (isDetail(piece)) this.#take(piece)
  }

  /** The blocks; `undefined` if there are none, or if they exceed the size limit. */
  gathered(): Detail[] | undefined {
    return this.#blocks.length === 0 || this.#size > MOST_CHARACTERS ? undefined : this.#blocks
  }

  #take(piece: Detail): void {
    for (const name of GROWING) this.#size += textOf(piece[name]).length
    if (this.#size > MOST_CHARACTERS) return
    const last = this.#blocks.at(-1)
    const goesOn =
      last !== undefined &&
      last.type === piece.type &&
      last.index === piece.index &&
      (piece.id ?? last.id) === (last.id ?? piece.id)
    if (goesOn) this.#blocks[this.#blocks.length - 1] = joined(last, piece)
    else this.#blocks.push(piece)
  }
}

function joined(last: Detail, piece: Detail): Detail {
  const both: Record<string, Json | undefined> = { ...last }
  for (const [name, value] of Object.entries(piece)) if (value !== null && value !== undefined) both[name] = value
  for (const name of GROWING)
    if (typeof last[name] === 'string' && typeof piece[name] === 'string') both[name] = last[name] + piece[name]
  return both
}

const textOf = (value: Json | undefined) => (typeof value === 'string' ? value : '')
const isDetail = (value: Json): value is Detail => typeof value === 'object' && value !== null && !Array.isArray(value)
