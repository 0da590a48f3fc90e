import type { Json, ModelCallEnd, ModelEvent, ToolCallPart } from '@svc/core/contracts'
import {
  type AnswerFor,
  type Block,
  callData,
  emptyMessage,
  inputOf,
  messageData,
  newId,
  NO_USAGE,
  stopOf,
  usageOf,
} from './answer.ts'
import { writeOpaque } from './opaque.ts'

const frame = (type: string, rest: string) => `event: ${type}\ndata: {"type":"${type}"${rest}}\n\n`

/** A tool call of the answer. */
interface CallFrames {
  /** The id as the model wrote it. */
  readonly id: string
  /** The id for the client: unique in the answer. */
  readonly shownId: string
  readonly tool: string
  /** Pieces of the arguments that wait until the calls before have ended. */
  waiting: string
  isOpen: boolean
  isDone: boolean
  /** Opaque data of the call. */
  data: Json | undefined
}

type Piece = Extract<ModelEvent, { type: 'tool_call_delta' }>

/**
 * Writes the events of one answer. Blocks follow one another, although the pieces of tool calls can be mixed: none begins before the
 * last one has ended.
 */
export class MessageFrames {
  readonly #for: AnswerFor
  readonly #provider: string
  #index = -1
  /** The kind of the open block, except a tool call. */
  #open: 'text' | 'thinking' | undefined
  /** The beginning of the frames of the open block of text. */
  #textHead = ''
  /** The text of reasoning that is left out. */
  #thought = ''
  #isRefused = false
  /** Calls that have not ended, in their order. Only the first can have an open block. */
  readonly #calls: CallFrames[] = []
  /** Calls in pieces, by their number in the answer. */
  readonly #pieced = new Map<number, CallFrames>()
  /** The ids of all calls. */
  readonly #ids = new Set<string>()
  /** Events that wait for the end of a call. */
  #later: ModelEvent[] = []

  constructor(answerFor: AnswerFor, provider: string) {
    this.#for = answerFor
    this.#provider = provider
  }

  begin(): string {
    const rest = { content: [], stop_reason: null, stop_sequence: null, usage: usageOf(NO_USAGE) }
    return `${frame('message_start', `,"message":${JSON.stringify({ ...emptyMessage(this.#for.model), ...rest })}`)}${frame('ping', '')}`
  }

  /** The frames of an event; an empty text if there are none. */
  take(event: ModelEvent): string {
    // most events are pieces of text, so this is the hot path
    if (event.type === 'text' && this.#open === 'text' && !event.refusal && event.text !== '')
      return `${this.#textHead}${JSON.stringify(event.text)}}}\n\n`
    if (event.type === 'tool_call_delta') return this.#piece(event)
    if (event.type === 'tool_call') return this.#call(event)
    if (this.#calls.length === 0) return this.#say(event)
    this.#later.push(event)
    return ''
  }

  end({ finish, stopText, usage, message }: Pick<ModelCallEnd, 'finish' | 'stopText' | 'usage' | 'message'>): string {
    // the arguments of a call that was cut stay as they are
    for (const call of this.#calls) call.isDone = true
    const rest = `${this.#nextCalls()}${this.#close()}${this.#messageData(message?.providerData)}`
    const delta = JSON.stringify(stopOf(this.#isRefused ? 'content_filter' : finish, stopText))
    return `${rest}${frame('message_delta', `,"delta":${delta},"usage":${JSON.stringify(usageOf(usage))}`)}${frame('message_stop', '')}`
  }

  /** The end of an answer that the model refuses to give. */
  refuse(): string {
    return this.end({ finish: 'content_filter', usage: NO_USAGE })
  }

  #say(event: ModelEvent): string {
    if (event.type === 'text') {
      if (event.refusal) this.#isRefused = true
      return event.text === '' ? '' : `${this.#into('text')}${this.#delta('text_delta', 'text', event.text)}`
    }
    if (event.type === 'reasoning') return this.#for.thinking === 'none' ? '' : this.#think(event.text, event.providerData)
    return event.type === 'citation' ? this.#cite(event.citation) : ''
  }

  /** A block without pieces. */
  #whole(block: Block): string {
    return `${this.#close()}${this.#start(block)}${this.#stop()}`
  }

  #start(block: Block): string {
    return frame('content_block_start', `,"index":${++this.#index},"content_block":${JSON.stringify(block)}`)
  }

  #stop(): string {
    return frame('content_block_stop', `,"index":${this.#index}`)
  }

  #delta(type: string, field: string, text: string): string {
    return frame('content_block_delta', `,"index":${this.#index},"delta":{"type":"${type}","${field}":${JSON.stringify(text)}}`)
  }

  #into(kind: 'text' | 'thinking'): string {
    if (this.#open === kind) return ''
    const closed = this.#close()
    this.#open = kind
    if (kind === 'thinking') return closed + this.#start({ type: kind, thinking: '', signature: '' })
    const started = this.#start({ type: kind, text: '' })
    this.#textHead = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${this.#index},"delta":{"type":"text_delta","text":`
    return closed + started
  }

  /** Ends the open block of text or reasoning. */
  #close(): string {
    if (this.#open === undefined) return ''
    if (this.#open === 'thinking') return this.#sign(undefined)
    this.#open = undefined
    return this.#stop()
  }

  #think(text: string, data: Json | undefined): string {
    // an empty piece only shows that the model is alive
    if (text === '' && data === undefined) return ''
    if (text === '' && this.#open !== 'thinking')
      return this.#whole({ type: 'redacted_thinking', data: writeOpaque({ provider: this.#provider, data: data! }) })
    const isOmitted = this.#for.thinking === 'omitted'
    const opened = this.#into('thinking')
    if (isOmitted) this.#thought += text
    const said = text === '' || isOmitted ? '' : this.#delta('thinking_delta', 'thinking', text)
    return `${opened}${said}${data === undefined ? '' : this.#sign(data)}`
  }

  /** Ends a block of reasoning with its signature. */
  #sign(data: Json | undefined): string {
    const text = this.#for.thinking === 'omitted' ? { text: this.#thought } : {}
    const signature = writeOpaque({ provider: this.#provider, ...(data === undefined ? {} : { data }), ...text })
    this.#thought = ''
    this.#open = undefined
    return `${this.#delta('signature_delta', 'signature', signature)}${this.#stop()}`
  }

  #cite({ url, title, quote = '' }: Extract<ModelEvent, { type: 'citation' }>['citation']): string {
    if (this.#open !== 'text' || url === undefined) return ''
    const citation = { type: 'web_search_result_location', url, title: title ?? null, cited_text: quote, encrypted_index: '' }
    return frame(
      'content_block_delta',
      `,"index":${this.#index},"delta":{"type":"citations_delta","citation":${JSON.stringify(citation)}}`
    )
  }

  #piece({ index, id, tool, text }: Piece): string {
    let call = this.#pieced.get(index)
    if (!call) this.#pieced.set(index, (call = this.#newCall(id, tool)))
    if (call.isOpen) return text === '' ? '' : this.#delta('input_json_delta', 'partial_json', text)
    call.waiting += text
    return this.#calls[0] === call ? this.#nextCalls() : ''
  }

  /** A whole call: the end of one that arrived in pieces, or a call without pieces. */
  #call(part: ToolCallPart): string {
    const pieced = this.#arriving(part.id)
    const call = pieced ?? this.#newCall(part.id, part.tool)
    if (!pieced) call.waiting = JSON.stringify(inputOf(part))
    if (part.providerData !== undefined) call.data = part.providerData
    call.isDone = true
    return this.#calls[0] === call ? this.#nextCalls() : ''
  }

  /** The call in pieces that arrives whole now: with the same id, or the next in order if the model gives no ids. */
  #arriving(id: string): CallFrames | undefined {
    return this.#calls.find(call => !call.isDone && (id === '' || call.id === id))
  }

  #newCall(id: string, tool: string): CallFrames {
    const shownId = id === '' || this.#ids.has(id) ? newId('toolu') : id
    this.#ids.add(shownId)
    const call: CallFrames = { id, shownId, tool, waiting: '', isOpen: false, isDone: false, data: undefined }
    this.#calls.push(call)
    return call
  }

  /** Writes the calls in their order, up to one that is not done. Then the events that waited. */
  #nextCalls(): string {
    let frames = ''
    for (let call = this.#calls[0]; call; call = this.#calls[0]) {
      if (!call.isOpen) frames += this.#beginCall(call)
      if (call.waiting !== '') frames += this.#delta('input_json_delta', 'partial_json', call.waiting)
      call.waiting = ''
      if (!call.isDone) return frames
      frames += this.#stop() + this.#callData(call)
      this.#calls.shift()
    }
    const later = this.#later
    this.#later = []
    for (const event of later) frames += this.#say(event)
    return frames
  }

  #beginCall(call: CallFrames): string {
    const { shownId, tool } = call
    const closed = this.#close() + this.#callData(call)
    call.isOpen = true
    return closed + this.#start({ type: 'tool_use', id: shownId, name: tool, input: {} })
  }

  /** A block with the opaque data of a call, once it is known: before the call if possible. */
  #callData(call: CallFrames): string {
    const { data, shownId } = call
    call.data = undefined
    return data === undefined ? '' : this.#whole(callData(shownId, data, this.#provider))
  }

  #messageData(data: Json | undefined): string {
    if (data === undefined || (this.#for.thinking === 'none' && this.#ids.size === 0)) return ''
    return this.#whole(messageData(data, this.#provider))
  }
}
