import type { Citation, FinishReason, Json, ModelCallEvent, TokenLogprob, ToolCallPart, Usage } from '@svc/core/contracts'
import { argumentsText, logprobWire, nowSeconds } from '../chat/wire.ts'
import { encodeOpaque, type OpaqueData } from '../opaque.ts'
import type { Shown } from './request.ts'
import type { ClientTools } from './tools.ts'

type Fields = Record<string, Json | undefined>

/** An event of a response stream. */
export interface ResponseEvent {
  readonly type: string
  readonly sequence_number: number
  readonly [field: string]: Json | undefined
}

/** Why a response failed. */
export interface ResponseError {
  readonly code: string
  readonly message: string
}

/** How the output of a response is written. */
export interface OutputOptions {
  /** The id of the response: 32 hexadecimal digits, without prefix. Ids of items contain it. */
  readonly hex: string
  /** Fields of the request that the response repeats. */
  readonly echo: Readonly<Record<string, Json | undefined>>
  readonly shows: Shown
  readonly tools: Pick<ClientTools, 'byName'>
  readonly createdAt: number
  /** The number of the first event. */
  readonly from?: number
}

/** An item of the output. `at`: its place in the output; hidden items have none. */
interface Item {
  readonly wire: Fields
  readonly at: number | undefined
}
interface Message extends Item {
  readonly content: Fields[]
  /** The text of the last part. */
  text: string
  logprobs: TokenLogprob[]
}
interface Call extends Item {
  readonly callId: string
  readonly isCustom: boolean
  text: string
}

type Part = Exclude<ModelCallEvent, { type: 'start' | 'native' | 'usage' | 'end' }>
type Of<T extends Part['type']> = Extract<Part, { type: T }>

export const responseId = (hex: string) => `resp_${hex}`

const OUTCOMES: Readonly<Record<FinishReason, string | undefined>> = {
  stop: undefined,
  tool_calls: undefined,
  length: 'max_output_tokens',
  content_filter: 'content_filter',
}

/** Makes a response, and the events of its stream, from the events of a call. */
export class Output {
  readonly #options: OutputOptions
  readonly #items: Item[] = []
  readonly #calls = new Map<string, Call>()
  #events: ResponseEvent[] = []
  #next: number
  #shown = 0
  #provider = ''
  #message: Message | undefined
  #reasoning: (Item & { text: string }) | undefined
  /** Text that waits for its log probabilities. */
  #pending = ''
  #usage: Usage | undefined
  #finish: FinishReason = 'stop'

  constructor(options: OutputOptions) {
    this.#options = options
    this.#next = options.from ?? 0
  }

  /** The first events. */
  begin(): ResponseEvent[] {
    const response = this.resource('in_progress')
    this.#emit('response.created', { response })
    this.#emit('response.in_progress', { response })
    return this.#taken()
  }

  /** The event with which a queued response begins, or begins again. */
  proceed(): { readonly events: ResponseEvent[]; readonly response: Fields } {
    const response = this.resource('in_progress')
    this.#emit('response.in_progress', { response })
    return { events: this.#taken(), response }
  }

  /** The events that an event of the call causes. */
  take(event: ModelCallEvent): ResponseEvent[] {
    if (event.type === 'start') this.#provider = event.provider
    else if (event.type === 'usage') this.#usage = event.usage
    else if (event.type === 'end') this.#usage ??= event.usage
    else if (event.type !== 'native' && !event.choice) this.#part(event)
    return this.#taken()
  }

  /** The last events of a call that completed, and the response. */
  finish(): { readonly events: ResponseEvent[]; readonly response: Fields } {
    const reason = OUTCOMES[this.#finish]
    this.#close(reason === undefined ? 'completed' : 'incomplete')
    for (const call of this.#calls.values()) this.#endCall(call, 'incomplete')
    const status = reason === undefined ? 'completed' : 'incomplete'
    const response = this.resource(status, { incomplete_details: reason === undefined ? null : { reason } })
    this.#emit(`response.${status}`, { response })
    return { events: this.#taken(), response }
  }

  /** The last events of a call that failed or was cancelled, and the response. */
  fail(error: ResponseError | null, status: 'failed' | 'cancelled' = 'failed') {
    const part = this.#message?.content.at(-1)
    if (part) part[part.type === 'refusal' ? 'refusal' : 'text'] = this.#message!.text + this.#pending
    for (const { wire } of this.#items) if (wire.status === 'in_progress') wire.status = 'incomplete'
    const response = this.resource(status, { error: error as Json })
    this.#emit('response.failed', { response })
    return { events: this.#taken(), response }
  }

  /** All items, with those that the client does not see, and with the data of the provider. */
  get items(): readonly Json[] {
    return this.#items.map(({ wire }) => wire as Json)
  }

  get #output(): Json[] {
    return visible(this.items, this.#options.shows)
  }

  resource(status: string, more: Fields = {}): Fields {
    const { hex, echo, createdAt } = this.#options
    const usage = this.#usage ? usageWire(this.#usage) : null
    return resourceOf({ hex, echo, createdAt, status }, { output: this.#output, usage, ...more })
  }

  #emit(type: string, fields: Fields): void {
    this.#events.push({ type, sequence_number: this.#next++, ...fields })
  }

  #taken(): ResponseEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  #add<T extends Item>(prefix: string, wire: Fields, isShown: boolean, more: Omit<T, keyof Item>): T {
    const id = `${prefix}_${this.#options.hex}_${this.#items.length}`
    const base: Item = { wire: { id, ...wire }, at: isShown ? this.#shown++ : undefined }
    const item = Object.assign(base, more) as Item as T
    this.#items.push(item)
    if (isShown) this.#emit('response.output_item.added', { output_index: item.at, item: { ...item.wire } })
    return item
  }

  #done(item: Item): void {
    if (item.at === undefined) return
    const [shown] = visible([item.wire as Json], this.#options.shows)
    this.#emit('response.output_item.done', { output_index: item.at, item: shown! })
  }

  #part(event: Part): void {
    if (event.type !== 'logprobs') this.#flush()
    switch (event.type) {
      case 'text':
        return this.#text(event)
      case 'logprobs':
        return this.#logprobs(event)
      case 'reasoning':
        return this.#thought(event)
      case 'tool_call_delta':
        return this.#callPiece(event)
      case 'tool_call':
        return this.#call(event)
      case 'citation':
        return this.#cite(event.citation)
      case 'finish':
        this.#finish = event.reason
        // an item that is incomplete must be the last one
        if (event.providerData !== undefined && OUTCOMES[event.reason] === undefined) {
          this.#close('completed')
          this.#keep({ provider: this.#provider, of: 'message', data: event.providerData })
        }
    }
  }

  #text({ text, refusal }: Of<'text'>): void {
    const message = this.#messageFor(refusal ? 'refusal' : 'output_text')
    if (refusal) {
      message.text += text
      this.#emit('response.refusal.delta', { ...this.#place(message), delta: text })
    } else if (this.#options.shows.logprobs) this.#pending = text
    else this.#sayText(message, text, [])
  }

  #sayText(message: Message, text: string, tokens: readonly TokenLogprob[]): void {
    message.text += text
    message.logprobs.push(...tokens)
    const logprobs: Json = tokens.map(logprobWire)
    this.#emit('response.output_text.delta', { ...this.#place(message), delta: text, logprobs })
  }

  /** Log probabilities follow the text that they are of, and are sent with it. */
  #logprobs({ tokens }: Of<'logprobs'>): void {
    const text = this.#pending
    this.#pending = ''
    this.#sayText(this.#messageFor('output_text'), text, tokens)
  }

  #flush(): void {
    if (this.#pending !== '') this.#logprobs({ type: 'logprobs', tokens: [] })
  }

  #place({ wire, at, content }: Message): Fields {
    return { item_id: wire.id, output_index: at, content_index: content.length - 1 }
  }

  /** The open message, with a last part of this type. */
  #messageFor(type: 'output_text' | 'refusal'): Message {
    if (!this.#message) {
      this.#close('completed')
      const content: Fields[] = []
      const wire = { type: 'message', status: 'in_progress', role: 'assistant', content: [] }
      this.#message = this.#add<Message>('msg', wire, true, { content, text: '', logprobs: [] })
      // the event keeps the item without content
      this.#message.wire.content = content as Json[]
    }
    const message = this.#message
    if (message.content.at(-1)?.type !== type) {
      this.#endPart(message)
      const part = () => (type === 'refusal' ? { type, refusal: '' } : { type, text: '', annotations: [], logprobs: [] })
      message.content.push(part())
      this.#emit('response.content_part.added', { ...this.#place(message), part: part() })
    }
    return message
  }

  #endPart(message: Message): void {
    const part = message.content.at(-1)
    if (!part) return
    const place = this.#place(message)
    const { text, logprobs } = message
    if (part.type === 'refusal') {
      part.refusal = text
      this.#emit('response.refusal.done', { ...place, refusal: text })
    } else {
      part.text = text
      part.logprobs = logprobs.map(logprobWire)
      this.#emit('response.output_text.done', { ...place, text, logprobs: part.logprobs as Json })
    }
    this.#emit('response.content_part.done', { ...place, part: { ...part } })
    message.text = ''
    message.logprobs = []
  }

  /** Ends the open message or reasoning. */
  #close(status: 'completed' | 'incomplete'): void {
    this.#flush()
    if (this.#message) {
      const message = this.#message
      this.#endPart(message)
      message.wire.status = status
      this.#message = undefined
      this.#done(message)
    }
    this.#endReasoning()
  }

  #cite({ url = '', title = '', start = 0, end = 0 }: Citation): void {
    const message = this.#messageFor('output_text')
    const annotations = message.content.at(-1)!.annotations as Json[]
    const annotation = { type: 'url_citation', url, title, start_index: start, end_index: end }
    annotations.push(annotation)
    const annotation_index = annotations.length - 1
    this.#emit('response.output_text.annotation.added', { ...this.#place(message), annotation_index, annotation })
  }

  #thought({ text, providerData: data }: Of<'reasoning'>): void {
    // a piece without text and data is a keep-alive
    if (text === '' && data === undefined) return
    if (!this.#reasoning) {
      this.#close('completed')
      // without text, only clients that want the data see it
      const isShown = text !== '' || this.#options.shows.encrypted
      this.#reasoning = this.#add('rs', { type: 'reasoning', summary: [] }, isShown, { text: '' })
    }
    const reasoning = this.#reasoning
    if (text !== '') this.#say(reasoning, text)
    if (data === undefined) return
    reasoning.wire.encrypted_content = encodeOpaque([{ provider: this.#provider, of: 'reasoning', text: reasoning.text, data }])
    this.#endReasoning()
  }

  #say(reasoning: Item & { text: string }, text: string): void {
    const place = this.#summaryPlace(reasoning)
    if (reasoning.text === '')
      this.#emit('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } })
    reasoning.text += text
    this.#emit('response.reasoning_summary_text.delta', { ...place, delta: text })
  }

  #summaryPlace({ wire, at }: Item): Fields {
    return { item_id: wire.id, output_index: at, summary_index: 0 }
  }

  /**
   * Reasoning is a summary, also for clients that ask for none: only the events of summaries have the same names in the API of
   * OpenAI and in Open Responses.
   */
  #endReasoning(): void {
    const reasoning = this.#reasoning
    this.#reasoning = undefined
    if (!reasoning) return
    const { wire, text } = reasoning
    if (text !== '') {
      const [place, part] = [this.#summaryPlace(reasoning), { type: 'summary_text', text }]
      wire.summary = [part]
      this.#emit('response.reasoning_summary_text.done', { ...place, text })
      this.#emit('response.reasoning_summary_part.done', { ...place, part })
    }
    this.#done(reasoning)
  }

  /** Keeps data of the provider in an item of its own. Only clients that want the data see it. */
  #keep(opaque: OpaqueData): void {
    const wire = { type: 'reasoning', summary: [], encrypted_content: encodeOpaque([opaque]) }
    this.#done(this.#add<Item>('rs', wire, this.#options.shows.encrypted, {}))
  }

  #callOf(id: string, tool: string): Call {
    const open = this.#calls.get(id)
    if (open) return open
    this.#close('completed')
    const { name, namespace, isCustom } = this.#options.tools.byName.get(tool) ?? { name: tool, isCustom: false }
    const named = { call_id: id, ...(namespace === undefined ? {} : { namespace }), name }
    const state = { callId: id, isCustom, text: '' }
    const call = isCustom
      ? this.#add<Call>('ctc', { type: 'custom_tool_call', status: 'in_progress', ...named, input: '' }, true, state)
      : this.#add<Call>('fc', { type: 'function_call', status: 'in_progress', ...named, arguments: '' }, true, state)
    this.#calls.set(id, call)
    return call
  }

  #callPiece({ id, tool, text }: Of<'tool_call_delta'>): void {
    const call = this.#callOf(id, tool)
    // the text of a custom call is inside JSON, so it is sent when it is whole
    if (call.isCustom || text === '') return
    call.text += text
    this.#emit('response.function_call_arguments.delta', { item_id: call.wire.id, output_index: call.at, delta: text })
  }

  #call(event: ToolCallPart): void {
    const call = this.#callOf(event.id, event.tool)
    const text = argumentsText(event)
    const place = { item_id: call.wire.id, output_index: call.at }
    if (call.isCustom) {
      const { input } = event.arguments
      const whole = typeof input === 'string' ? input : text
      call.wire.input = whole
      this.#emit('response.custom_tool_call_input.delta', { ...place, delta: whole })
      this.#emit('response.custom_tool_call_input.done', { ...place, input: whole })
    } else {
      if (call.text === '') {
        call.text = text
        this.#emit('response.function_call_arguments.delta', { ...place, delta: text })
      }
      // the pieces are the text as the model wrote it
      call.wire.arguments = call.text
      this.#emit('response.function_call_arguments.done', { ...place, name: call.wire.name, arguments: call.text })
    }
    this.#endCall(call, 'completed')
    if (event.providerData !== undefined)
      this.#keep({ provider: this.#provider, of: 'call', call: event.id, data: event.providerData })
  }

  #endCall(call: Call, status: 'completed' | 'incomplete'): void {
    this.#calls.delete(call.callId)
    if (!call.isCustom) call.wire.arguments = call.text
    call.wire.status = status
    this.#done(call)
  }
}

/** What a client sees of the items of an output. */
export function visible(items: readonly Json[], { encrypted }: Pick<Shown, 'encrypted'>): Json[] {
  if (encrypted) return items.map(item => ({ ...(item as object) }) as Json)
  return items.flatMap(item => {
    const { encrypted_content, ...shown }: Fields = { ...(item as object) }
    const isHidden = encrypted_content !== undefined && (shown.summary as Json[] | undefined)?.length === 0
    return isHidden ? [] : [shown as Json]
  })
}

const usageWire = ({ input, output, cached, cacheWrite, reasoning }: Usage) => ({
  input_tokens: input,
  input_tokens_details: { cached_tokens: cached ?? 0, ...(cacheWrite === undefined ? {} : { cache_write_tokens: cacheWrite }) },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: reasoning ?? 0 },
  total_tokens: input + output,
})

/** The beginning of a response. */
export interface ResponseHead {
  readonly hex: string
  readonly echo: Readonly<Fields>
  /** Unix time in seconds. */
  readonly createdAt: number
  readonly status: string
}

/** A response with all keys that clients require, also those that are null. */
export function resourceOf({ hex, echo, createdAt, status }: ResponseHead, more: Fields): Fields {
  return {
    id: responseId(hex),
    object: 'response',
    created_at: createdAt,
    status,
    completed_at: status === 'completed' ? nowSeconds() : null,
    error: null,
    incomplete_details: null,
    ...echo,
    output: [],
    usage: null,
    ...more,
  }
}
