import type {
  FinishReason,
  Json,
  MessagePart,
  ModelEvent,
  StoredMessage,
  TextPart,
  ToolCallPart,
  Usage,
} from '@svc/core/contracts'

/** What a model has said in one round, put together from its events. */
export class Answer {
  readonly calls: ToolCallPart[] = []
  usage: Usage = { input: 0, output: 0 }
  finish: FinishReason | undefined = undefined
  readonly #parts: MessagePart[] = []
  #text = ''
  #providerData: Json | undefined = undefined

  /** True once anything came that a caller or the model will miss. */
  get any(): boolean {
    return this.#text !== '' || this.#parts.length > 0
  }

  /** Takes an event; returns its text, where it has any. */
  take(event: ModelEvent): string | undefined {
    if (event.type === 'text') {
      this.#text += event.text
      return event.text
    }
    if (event.type === 'usage') this.usage = event.usage
    else if (event.type === 'finish') [this.finish, this.#providerData] = [event.reason, event.providerData]
    else this.#add(event)
    return undefined
  }

  message(provider: string): StoredMessage {
    this.#closeText()
    const data = this.#providerData
    return { role: 'assistant', parts: [...this.#parts], provider, ...(data === undefined ? {} : { providerData: data }) }
  }

  #add(part: Exclude<MessagePart, TextPart> & ModelEvent) {
    this.#closeText()
    this.#parts.push(part)
    if (part.type === 'tool_call') this.calls.push(part)
  }

  #closeText() {
    if (this.#text !== '') this.#parts.push({ type: 'text', text: this.#text })
    this.#text = ''
  }
}
