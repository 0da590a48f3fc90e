import { randomUUID } from 'node:crypto'
import { type AGUIEvent, EventType, PROTOCOL_VERSION, type RunFinishedEvent, type TokenUsage } from '@ag-ui/core'
import type { Json, PublicError, ToolCallPart, TurnEnd, TurnEvent } from '@svc/core/contracts'

type Of<T extends TurnEvent['type']> = Extract<TurnEvent, { type: T }>

/**
 * Writes the events of a turn as those of AG-UI. Each step of the model is one message of the assistant: its text and its calls have
 * one id, so that the client sends them back as one message.
 */
export class RunWriter {
  readonly #threadId: string
  readonly #runId: string
  /** The message of the present step. */
  #message = randomUUID() as string
  /** What is open: text of that message, or a span of reasoning by its id. */
  #open: { readonly kind: 'text' } | { readonly kind: 'reasoning'; readonly id: string } | undefined
  /** A result has been written: what follows is another step. */
  #isAnswered = false
  /** Whether the message of the step has text already: text after a call is another message. */
  #hasText = false
  #failure: PublicError | undefined
  /** The id under which questions of the turn are answered. */
  #requestId = ''

  constructor({ threadId, runId }: { readonly threadId: string; readonly runId: string }) {
    this.#threadId = threadId
    this.#runId = runId
  }

  started(): string {
    return frames({
      type: EventType.RUN_STARTED,
      threadId: this.#threadId,
      runId: this.#runId,
      protocolVersion: PROTOCOL_VERSION,
      timestamp: Date.now(),
    })
  }

  /** The frames of an event of the turn; an empty text for none. `error` and `end` are written by `finished`. */
  take(event: TurnEvent): string {
    switch (event.type) {
      case 'token':
        return this.#text(event)
      case 'reasoning':
        return this.#reasoning(event)
      case 'tool_call':
        return this.#step() + this.#call(event.callId, event.tool, JSON.stringify(event.arguments))
      case 'tool_result':
        return this.#result(event)
      case 'ask':
        return this.#ask(event)
      case 'error':
        this.#failure = event.error
        return ''
      case 'start':
        this.#requestId = event.requestId
        return ''
      case 'end':
        return ''
    }
  }

  /** The error of a turn that has failed. */
  get failure(): PublicError | undefined {
    return this.#failure
  }

  /** The last events of a turn that has not failed. Calls of tools of the client are for the next run. */
  finished(end: TurnEnd): string {
    const calls = end.status === 'completed' ? (end.calls ?? []) : []
    const before = calls.length > 0 ? this.#step() : this.#close()
    const written = calls.map(call => this.#call(call.id, call.tool, argumentsOf(call)))
    return before + written.join('') + frames(this.#last(end, calls))
  }

  /** The last event of a run that has failed. */
  failed({ message, code }: { readonly message: string; readonly code: string }, end?: TurnEnd): string {
    const usage = end && end.usage.total > 0 ? { usage: [usageOf(end)] } : {}
    return this.#close() + frames({ type: EventType.RUN_ERROR, message, code, timestamp: Date.now(), ...usage })
  }

  #last(end: TurnEnd, calls: readonly ToolCallPart[]): RunFinishedEvent {
    const pending = calls.length > 0 ? { pendingToolCallIds: calls.map(({ id }) => id) } : {}
    return {
      type: EventType.RUN_FINISHED,
      threadId: this.#threadId,
      runId: this.#runId,
      timestamp: Date.now(),
      outcome: end.status === 'cancelled' ? { type: 'cancelled' } : { type: 'success', ...pending },
      ...(end.usage.total > 0 ? { usage: [usageOf(end)] } : {}),
    }
  }

  #text({ content }: Of<'token'>): string {
    if (content === '') return ''
    const before = this.#open?.kind === 'text' ? '' : this.#step() + this.#begin()
    // by hand, because this is the hot path
    return `${before}data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"${this.#message}","delta":${JSON.stringify(content)}}\n\n`
  }

  #begin(): string {
    if (this.#hasText) this.#next()
    this.#open = { kind: 'text' }
    this.#hasText = true
    return frames({ type: EventType.TEXT_MESSAGE_START, messageId: this.#message, role: 'assistant', timestamp: Date.now() })
  }

  #reasoning({ content }: Of<'reasoning'>): string {
    if (content === '') return ''
    if (this.#open?.kind === 'reasoning')
      return frames({ type: EventType.REASONING_MESSAGE_CONTENT, messageId: this.#open.id, delta: content })
    const before = this.#step()
    const messageId = randomUUID()
    this.#open = { kind: 'reasoning', id: messageId }
    return (
      before +
      frames(
        { type: EventType.REASONING_START, messageId, timestamp: Date.now() },
        { type: EventType.REASONING_MESSAGE_START, messageId, role: 'reasoning' },
        { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta: content }
      )
    )
  }

  /** Ends the text or reasoning that is open. */
  #close(): string {
    const open = this.#open
    this.#open = undefined
    if (open === undefined) return ''
    if (open.kind === 'text') return frames({ type: EventType.TEXT_MESSAGE_END, messageId: this.#message })
    const { id: messageId } = open
    return frames({ type: EventType.REASONING_MESSAGE_END, messageId }, { type: EventType.REASONING_END, messageId })
  }

  /** Ends what is open, and begins the message of the next step after results. */
  #step(): string {
    const closed = this.#close()
    if (this.#isAnswered) this.#next()
    return closed
  }

  #next(): void {
    this.#message = randomUUID()
    this.#isAnswered = false
    this.#hasText = false
  }

  #call(toolCallId: string, toolCallName: string, written: string): string {
    return frames(
      { type: EventType.TOOL_CALL_START, toolCallId, toolCallName, parentMessageId: this.#message, timestamp: Date.now() },
      { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: written },
      { type: EventType.TOOL_CALL_END, toolCallId }
    )
  }

  #result({ callId, success, result, error }: Of<'tool_result'>): string {
    this.#isAnswered = true
    const content = success ? textOf(result) : (error ?? textOf(result))
    return frames({
      type: EventType.TOOL_CALL_RESULT,
      messageId: randomUUID(),
      toolCallId: callId,
      content,
      role: 'tool',
      timestamp: Date.now(),
    })
  }

  /** The protocol has no event for a question inside a run: `svc.ask` is one of svc. */
  #ask({ tool, callId, arguments: given, question }: Of<'ask'>): string {
    return frames({
      type: EventType.CUSTOM,
      name: 'svc.ask',
      value: { request_id: this.#requestId, call_id: callId, tool, arguments: given, question },
    })
  }
}

const frames = (...events: readonly AGUIEvent[]): string => events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')

const argumentsOf = ({ arguments: given, invalid }: ToolCallPart) => invalid ?? JSON.stringify(given)

const textOf = (result: Json) => (typeof result === 'string' ? result : JSON.stringify(result))

const usageOf = ({ provider, model, usage }: TurnEnd): TokenUsage => ({
  provider,
  model,
  inputTokens: usage.input,
  outputTokens: usage.output,
  totalTokens: usage.total,
  ...(usage.reasoning === undefined ? {} : { reasoningTokens: usage.reasoning }),
  ...(usage.cached === undefined ? {} : { cachedInputTokens: usage.cached }),
  ...(usage.cacheWrite === undefined ? {} : { cacheWriteInputTokens: usage.cacheWrite }),
})
