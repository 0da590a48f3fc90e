import type { FinishReason, Json, ModelEvent, Usage } from '@svc/core/contracts'
import { cutShort, type FrameReader, isTree, malformed, textIn, ToolCalls, type Upstream } from '@svc/provider-http'
import type { Preset } from './presets.ts'

interface WireCall {
  readonly index?: number | null
  readonly id?: string | null
  readonly function?: { readonly name?: string | null; readonly arguments?: unknown } | null
}
/** A piece of a message. `content` is text, or a list of pieces that can include reasoning. */
interface WireDelta {
  readonly content?: string | null | readonly WirePiece[]
  readonly refusal?: string | null
  readonly reasoning_content?: string | null
  readonly reasoning?: string | null
  readonly reasoning_details?: readonly Json[] | null
  readonly tool_calls?: readonly WireCall[] | null
}
interface WirePiece {
  readonly type?: string
  readonly text?: string
  readonly thinking?: readonly WirePiece[] | string
}
interface WireChunk {
  readonly choices?: readonly {
    readonly delta?: WireDelta | null
    readonly message?: WireDelta | null
    readonly finish_reason?: string | null
  }[]
  readonly usage?: WireUsage | null
  readonly x_groq?: { readonly usage?: WireUsage | null } | null
  readonly error?: unknown
}
type Emit = (event: ModelEvent) => void

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

/** Reads the chunks of one answer, or one whole answer. */
export class ChunkReader implements FrameReader {
  readonly #provider: string
  readonly #failed: Upstream['failed']
  readonly #calls: ToolCalls
  readonly #details: ReasoningDetails | undefined
  readonly #template = new TextTemplate()
  #usage: WireUsage | undefined
  #reason: string | undefined
  #refused = false
  done = false

  constructor(provider: string, preset: Preset, upstream: Pick<Upstream, 'failed'>) {
    this.#provider = provider
    this.#failed = (status, body) => upstream.failed(status, body)
    this.#calls = new ToolCalls(provider)
    this.#details = preset.reasoningDetails ? new ReasoningDetails() : undefined
  }

  frame(data: string, event: string, emit: Emit): void {
    if (data === '[DONE]') {
      this.done = true
      return
    }
    const text = event === 'error' ? undefined : this.#template.read(data)
    if (text !== undefined) {
      if (text !== '') emit({ type: 'text', text })
      return
    }
    const chunk = JSON.parse(data) as WireChunk
    if (chunk.error || event === 'error') throw this.#failed(200, chunk)
    this.#take(chunk, emit)
    this.#template.learn(data, chunk)
  }

  whole(body: unknown, emit: Emit): void {
    const message = (body as WireChunk | null)?.choices?.[0]?.message
    if (typeof message !== 'object' || message === null) throw malformed(this.#provider)
    if (message.tool_calls) this.#list(message.tool_calls)
    this.#take(withPlaces(body as WireChunk, message), emit)
  }

  end(emit: Emit): void {
    const reason = this.#finish()
    if (reason === 'tool_calls') this.#calls.emit(emit)
    if (this.#usage) emit({ type: 'usage', usage: usageOf(this.#usage) })
    const details = this.#details?.gathered()
    emit({ type: 'finish', reason, ...(details ? { providerData: { reasoning_details: details } } : {}) })
  }

  #take(chunk: WireChunk, emit: Emit): void {
    const choice = chunk.choices?.[0]
    const delta = choice?.delta ?? choice?.message
    if (delta) this.#piece(delta, emit)
    if (choice?.finish_reason) this.#reason = choice.finish_reason
    const usage = chunk.usage ?? chunk.x_groq?.usage
    if (usage) this.#usage = usage
  }

  #piece(delta: WireDelta, emit: Emit): void {
    const { content, refusal } = delta
    const reasoning = delta.reasoning_content || delta.reasoning
    if (typeof reasoning === 'string' && reasoning !== '') emit({ type: 'reasoning', text: reasoning })
    if (this.#details && delta.reasoning_details) this.#details.add(delta.reasoning_details)
    if (typeof content === 'string') {
      if (content !== '') emit({ type: 'text', text: content })
    } else if (content) takePieces(this.#list(content), emit)
    if (typeof refusal === 'string' && refusal !== '') this.#refuse(refusal, emit)
    if (delta.tool_calls) for (const call of this.#list(delta.tool_calls)) this.#call(call)
  }

  /** The objects of a list. Throws MODEL_FAILED for anything else that a server sends in its place. */
  #list<T extends object>(value: readonly T[]): readonly T[] {
    const isList = Array.isArray(value as unknown) && value.every(one => isTree(one))
    if (!isList) throw malformed(this.#provider)
    return value
  }

  #refuse(text: string, emit: Emit): void {
    this.#refused = true
    emit({ type: 'text', text })
  }

  #call({ index, id, function: wanted }: WireCall): void {
    const args = wanted?.arguments
    this.#calls.add(index ?? undefined, {
      ...(typeof id === 'string' ? { id } : {}),
      ...(typeof wanted?.name === 'string' ? { tool: wanted.name } : {}),
      ...(args === undefined || args === null ? {} : { text: typeof args === 'string' ? args : JSON.stringify(args) }),
    })
  }

  /** The finish reason. Some servers report `stop` and call tools anyway. An answer that was cut has incomplete calls, which are dropped. */
  #finish(): FinishReason {
    if (this.#reason === undefined && !this.done) throw cutShort(this.#provider)
    if (BROKEN.has(this.#reason ?? ''))
      throw this.#failed(200, { error: { message: 'the model stopped with an error', code: 'server_error' } })
    if (this.#refused) return 'content_filter'
    const reported = Object.hasOwn(REASONS, this.#reason ?? '') ? REASONS[this.#reason ?? '']! : 'stop'
    if (reported === 'length' || reported === 'content_filter') return reported
    return this.#calls.count > 0 ? 'tool_calls' : 'stop'
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
  }
}

/** The text with its escapes resolved; `undefined` if it is not the content of one JSON string. */
function parsedText(text: string): string | undefined {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return undefined
  }
}

/** The text of a chunk that has nothing else for the reader. */
function onlyTextOf({ choices, usage, x_groq, error }: WireChunk): string | undefined {
  const { delta, message, finish_reason } = choices?.[0] ?? {}
  if (usage || x_groq?.usage || error || finish_reason || message || !delta || hasMore(delta)) return undefined
  return typeof delta.content === 'string' ? delta.content : undefined
}

const hasMore = ({ refusal, reasoning, reasoning_content, reasoning_details, tool_calls }: WireDelta): boolean =>
  Boolean(refusal || reasoning || reasoning_content || reasoning_details || tool_calls)

/** Whole calls are identified by their position, not by their index. */
const withPlaces = (body: WireChunk, message: WireDelta): WireChunk => ({
  ...body,
  choices: [
    { ...body.choices?.[0], message: { ...message, tool_calls: message.tool_calls?.map((call, index) => ({ ...call, index })) } },
  ],
})

function takePieces(pieces: readonly WirePiece[], emit: Emit): void {
  for (const { type, text, thinking } of pieces) {
    if (type === 'text' && typeof text === 'string' && text !== '') emit({ type: 'text', text })
    const thought =
      typeof thinking === 'string'
        ? thinking
        : (Array.isArray(thinking) ? thinking : []).map(piece => textIn(piece, 'text') ?? '').join('')
    if (thought !== '') emit({ type: 'reasoning', text: thought })
  }
}

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

/** Usage in OpenAI's form, with DeepSeek's field for cached tokens. */
interface WireUsage {
  readonly prompt_tokens?: number | null
  readonly completion_tokens?: number | null
  readonly prompt_tokens_details?: { readonly cached_tokens?: number | null } | null
  readonly prompt_cache_hit_tokens?: number | null
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number | null } | null
}

function usageOf(wire: WireUsage): Usage {
  const [input, output] = [count(wire.prompt_tokens) ?? 0, count(wire.completion_tokens) ?? 0]
  const cached = count(wire.prompt_tokens_details?.cached_tokens ?? wire.prompt_cache_hit_tokens)
  const reasoning = count(wire.completion_tokens_details?.reasoning_tokens)
  return {
    input,
    output,
    ...(cached === undefined ? {} : { cached: Math.min(cached, input) }),
    ...(reasoning === undefined ? {} : { reasoning: Math.min(reasoning, output) }),
  }
}

const count = (value: unknown): number | undefined => (typeof value === 'number' && value >= 0 ? Math.trunc(value) : undefined)
