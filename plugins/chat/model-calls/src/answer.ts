import type {
  FinishReason,
  Json,
  MessagePart,
  ModelEvent,
  ReasoningPart,
  StoredMessage,
  TextPart,
  ToolCallPart,
  Usage,
} from '@svc/core/contracts'
import { isWithin, weightOf } from '@svc/plugin-kit'

/** The answer of a model in one call, assembled from its events. */
export class Answer {
  usage: Usage = { input: 0, output: 0 }
  finish: FinishReason | undefined = undefined
  stopText: string | undefined = undefined
  readonly #limit: number
  readonly #argumentsLimit: number
  #size = 0
  #calls: ToolCallPart[] = []
  #parts: MessagePart[] = []
  #text = ''
  #refusal: true | undefined = undefined
  #hasPieces = false
  #reasoning: ReasoningPart | undefined = undefined
  #providerData: Json | undefined = undefined

  constructor(limit: number, argumentsLimit: number) {
    this.#limit = limit
    this.#argumentsLimit = argumentsLimit
  }

  /** Maximum characters of the answer. */
  get limit(): number {
    return this.#limit
  }

  /** An empty answer with the same limits. */
  renewed(): Answer {
    return new Answer(this.#limit, this.#argumentsLimit)
  }

  /** True if the answer has any text, reasoning or tool call, or a piece of one. */
  get any(): boolean {
    return this.#text !== '' || this.#reasoning !== undefined || this.#parts.length > 0 || this.#hasPieces
  }

  /** Counts the size of an event. False if the answer exceeds its limit. */
  grows(event: ModelEvent): boolean {
    this.#size += event.type === 'text' ? event.text.length : sizeOf(event, this.#limit)
    return this.#size <= this.#limit
  }

  /** Adds an event. Further answers (`n`) are not kept: only their reader sees them. */
  take(event: ModelEvent): void {
    if ('choice' in event && event.choice !== undefined && event.choice > 0) {
      this.#hasPieces = true
      return
    }
    if (event.type === 'text') this.#say(event)
    else if (event.type === 'usage') this.usage = event.usage
    else if (event.type === 'finish') this.#finishWith(event)
    else if (event.type === 'reasoning') this.#reason(event)
    else if (event.type === 'tool_call') this.#call(event)
    else if (event.type === 'tool_call_delta') this.#hasPieces = true
  }

  message(provider: string): StoredMessage {
    const data = this.#providerData
    return { role: 'assistant', parts: this.#whole(), provider, ...(data === undefined ? {} : { providerData: data }) }
  }

  /** The whole answer as events; `undefined` before its finish event. */
  events(): readonly ModelEvent[] | undefined {
    if (this.finish === undefined) return undefined
    const data = this.#providerData
    return [
      ...(this.#whole() as (TextPart | ReasoningPart | ToolCallPart)[]),
      { type: 'usage', usage: this.usage },
      {
        type: 'finish',
        reason: this.finish,
        ...(this.stopText === undefined ? {} : { stopText: this.stopText }),
        ...(data === undefined ? {} : { providerData: data }),
      },
    ]
  }

  #say({ text, refusal }: TextPart) {
    if (refusal !== this.#refusal) this.#closeText()
    this.#refusal = refusal
    this.#text += text
  }

  #finishWith({ reason, stopText, providerData }: Extract<ModelEvent, { type: 'finish' }>) {
    ;[this.finish, this.stopText, this.#providerData] = [reason, stopText, providerData]
  }

  /** Joins pieces of reasoning. A piece with opaque data ends the part. */
  #reason(event: ReasoningPart) {
    // an empty piece only shows that the model is alive
    if (event.text === '' && event.providerData === undefined) return
    this.#closeText()
    this.#reasoning = this.#reasoning ? { ...event, text: this.#reasoning.text + event.text } : event
    if (event.providerData !== undefined) this.#closeReasoning()
  }

  #call(event: ToolCallPart) {
    const call = this.#unique(this.#bounded(event))
    this.#closeAll()
    this.#parts.push(call)
    this.#calls.push(call)
  }

  /** Drops arguments that are too long. The model receives their beginning. */
  #bounded(call: ToolCallPart): ToolCallPart {
    const limit = this.#argumentsLimit
    if (call.invalid !== undefined && call.invalid.length > limit)
      return { ...call, arguments: {}, invalid: beginningOf(call.invalid, limit) }
    if (isWithin(call.arguments, limit)) return call
    return { ...call, arguments: {}, invalid: `they have more than ${limit} characters, or are nested too deeply` }
  }

  /** Makes the id of a call unique, because results refer to it. */
  #unique(call: ToolCallPart): ToolCallPart {
    if (call.id !== '' && !this.#calls.some(item => item.id === call.id)) return call
    return { ...call, id: `${call.id || 'call'}_${this.#calls.length + 1}` }
  }

  #whole(): MessagePart[] {
    this.#closeAll()
    return this.#parts
  }

  #closeAll() {
    this.#closeText()
    this.#closeReasoning()
  }

  #closeText() {
    if (this.#text === '') return
    this.#closeReasoning()
    this.#parts.push({ type: 'text', text: this.#text, ...(this.#refusal && { refusal: this.#refusal }) })
    this.#text = ''
  }

  #closeReasoning() {
    if (this.#reasoning) this.#parts.push(this.#reasoning)
    this.#reasoning = undefined
  }
}

/** The size of a non-text event. Its provider data has no size limit of its own. */
function sizeOf(event: ModelEvent, limit: number): number {
  if (event.type === 'usage' || event.type === 'native') return 0
  if (event.type === 'tool_call_delta') return event.text.length
  if (event.type === 'logprobs' || event.type === 'citation') return weightOf(event, limit)
  const reasoning = event.type === 'reasoning' ? event.text.length : 0
  const call = event.type === 'tool_call' ? weightOf([event.arguments, event.invalid, event.id, event.tool], limit) : 0
  const data = 'providerData' in event && event.providerData !== undefined ? weightOf(event.providerData, limit) : 0
  return reasoning + call + data
}

const beginningOf = (text: string, limit: number) =>
  `${Buffer.from(text.slice(0, 200)).toString()}… (more than ${limit} characters)`
