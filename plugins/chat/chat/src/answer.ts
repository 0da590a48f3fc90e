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
import { isWithin, weightOf } from './messages.ts'

/** What a model has said in one round, put together from its events. */
export class Answer {
  usage: Usage = { input: 0, output: 0 }
  finish: FinishReason | undefined = undefined
  readonly #limit: number
  readonly #argumentsLimit: number
  #size = 0
  #calls: ToolCallPart[] = []
  #parts: MessagePart[] = []
  #text = ''
  #reasoning: ReasoningPart | undefined = undefined
  #providerData: Json | undefined = undefined

  constructor(limit: number, argumentsLimit: number) {
    this.#limit = limit
    this.#argumentsLimit = argumentsLimit
  }

  /** The tools it wants. */
  get calls(): readonly ToolCallPart[] {
    return this.#calls
  }

  /** True once anything came that a caller or the model will miss. */
  get any(): boolean {
    return this.#text !== '' || this.#reasoning !== undefined || this.#parts.length > 0
  }

  /** Whether there is room for an event. */
  grows(event: ModelEvent): boolean {
    this.#size += event.type === 'text' ? event.text.length : sizeOf(event, this.#limit)
    return this.#size <= this.#limit
  }

  /** Takes an event; returns its text, where it has any. */
  take(event: ModelEvent): string | undefined {
    if (event.type === 'text') {
      this.#text += event.text
      return event.text
    }
    if (event.type === 'usage') this.usage = event.usage
    else if (event.type === 'finish') [this.finish, this.#providerData] = [event.reason, event.providerData]
    else if (event.type === 'reasoning') this.#reason(event)
    else this.#call(event)
    return undefined
  }

  message(provider: string): StoredMessage {
    const data = this.#providerData
    return { role: 'assistant', parts: this.#whole(), provider, ...(data === undefined ? {} : { providerData: data }) }
  }

  /** All of it as events; `undefined` before its finish. */
  events(): readonly ModelEvent[] | undefined {
    if (this.finish === undefined) return undefined
    const data = this.#providerData
    return [
      ...(this.#whole() as (TextPart | ReasoningPart | ToolCallPart)[]),
      { type: 'usage', usage: this.usage },
      { type: 'finish', reason: this.finish, ...(data === undefined ? {} : { providerData: data }) },
    ]
  }

  /** Forgets the tools it wants: it was to do without. */
  dropCalls(): void {
    this.#calls = []
    this.#parts = this.#parts.filter(part => part.type !== 'tool_call')
  }

  /** Reasoning comes in pieces; the one with opaque data ends what it belongs to. */
  #reason(event: ReasoningPart) {
    // a sign of life
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
      return { ...call, arguments: {}, invalid: begun(call.invalid, limit) }
    if (isWithin(call.arguments, limit)) return call
    return { ...call, arguments: {}, invalid: `they have more than ${limit} characters, or are nested too deeply` }
  }

  /** Makes the id of a call unique, because results refer to it. */
  #unique(call: ToolCallPart): ToolCallPart {
    if (call.id !== '' && !this.#calls.some(one => one.id === call.id)) return call
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
    this.#parts.push({ type: 'text', text: this.#text })
    this.#text = ''
  }

  #closeReasoning() {
    if (this.#reasoning) this.#parts.push(this.#reasoning)
    this.#reasoning = undefined
  }
}

/** What is beside its text is weighed: it is as long as its provider likes. */
function sizeOf(event: ModelEvent, limit: number): number {
  if (event.type === 'usage') return 0
  const words = event.type === 'reasoning' ? event.text.length : 0
  const given = event.type === 'tool_call' ? weightOf([event.arguments, event.invalid, event.id, event.tool], limit) : 0
  const data = 'providerData' in event && event.providerData !== undefined ? weightOf(event.providerData, limit) : 0
  return words + given + data
}

const begun = (text: string, limit: number) => `${Buffer.from(text.slice(0, 200)).toString()}… (more than ${limit} characters)`
