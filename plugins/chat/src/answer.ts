import type { FinishReason, Json, MessagePart, ModelEvent, StoredMessage, ToolCallPart, Usage } from '@svc/core/contracts'

/** What a model has said in one round, put together from its events. */
export interface Answer {
  readonly calls: readonly ToolCallPart[]
  readonly usage: Usage
  readonly finish: FinishReason | undefined
  /** True once anything came that a caller or the model will miss. */
  readonly any: boolean
  /** Takes an event; returns its text, where it has any. */
  take(event: ModelEvent): string | undefined
  message(provider: string): StoredMessage
}

/** Begins to gather a round. */
export function createAnswer(): Answer {
  const parts: MessagePart[] = []
  const calls: ToolCallPart[] = []
  let text = ''
  let usage: Usage = { input: 0, output: 0 }
  let finish: FinishReason | undefined
  let providerData: Json | undefined

  const closeText = () => {
    if (text !== '') parts.push({ type: 'text', text })
    text = ''
  }
  const add = (part: MessagePart) => {
    closeText()
    parts.push(part)
  }
  return {
    calls,
    get usage() {
      return usage
    },
    get finish() {
      return finish
    },
    get any() {
      return text !== '' || parts.length > 0
    },
    take(event) {
      if (event.type === 'text') {
        text += event.text
        return event.text
      }
      if (event.type === 'usage') usage = event.usage
      else if (event.type === 'finish') [finish, providerData] = [event.reason, event.providerData]
      else add(event)
      if (event.type === 'tool_call') calls.push(event)
      return undefined
    },
    message(provider) {
      closeText()
      return { role: 'assistant', parts: [...parts], provider, ...(providerData === undefined ? {} : { providerData }) }
    },
  }
}
