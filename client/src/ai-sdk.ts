import type { ChatTransport, UIMessage, UIMessageChunk } from 'ai'
import type { ChatStreamRequest, Client, Schemas } from './client.ts'
import { ApiError, isApiError } from './errors.ts'

type ChatEvent = Schemas['ChatEvent']

export interface ChatTransportOptions {
  readonly client: Client
  /** Fields of each chat request, such as `model` or `tools`. `body` of `sendMessage` overrides them. */
  readonly body?: Partial<ChatStreamRequest>
}

/** What the metadata of a message of the assistant contains; `status` and the fields after it once the turn has ended. */
export interface ChatMetadata {
  readonly conversation_id?: string
  readonly request_id?: string
  readonly provider?: string
  readonly model?: string
  readonly status?: Schemas['EndEvent']['status']
  readonly tokens_used?: Schemas['EndEvent']['tokens_used']
  readonly duration_ms?: number
}

/**
 * Connects `useChat` of the AI SDK to the chat stream of a server. The server keeps the conversation: a request contains the last
 * message only, and the id of the conversation is in the metadata of the messages. A tool call that asks for approval ends a stream of
 * the AI SDK; the turn waits, and continues when `sendAutomaticallyWhen: approvalsAreAnswered` sends the approval.
 */
export function createChatTransport<M extends UIMessage>({ client, body: defaults }: ChatTransportOptions): ChatTransport<M> {
  /** Turns that wait for an approval, by chat. */
  const waiting = new Map<string, Turn>()
  return {
    async sendMessages({ trigger, chatId, messageId, messages, abortSignal, body }) {
      const last = messages.at(-1)
      const waited = waiting.get(chatId)
      if (last?.role === 'assistant' && trigger === 'submit-message') {
        if (!waited) throw unsupported('the turn that asked for the approval has ended')
        await waited.answer(last)
        waiting.delete(chatId)
        return waited.stream(abortSignal, () => waiting.set(chatId, waited))
      }
      waiting.delete(chatId)
      waited?.close()
      if (trigger !== 'submit-message' || messageId !== undefined) throw unsupported('svc cannot generate a reply anew')
      const conversation = conversationOf(messages)
      const turn = new Turn(client, {
        ...defaults,
        ...body,
        message: textOf(last),
        ...(conversation === undefined ? {} : { conversation_id: conversation }),
        interactive: true,
      })
      return turn.stream(abortSignal, () => waiting.set(chatId, turn))
    },
    // the chat stream cannot be joined again
    reconnectToStream: async () => null,
  }
}

/**
 * For `sendAutomaticallyWhen` of `useChat`: whether all approvals that the last message asks for have an answer. Other tools of the
 * message can still run, which `lastAssistantMessageIsCompleteWithApprovalResponses` of the AI SDK does not allow.
 */
export function approvalsAreAnswered({ messages }: { readonly messages: readonly UIMessage[] }): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return false
  const states = new Set(last.parts.map(part => ('state' in part ? part.state : undefined)))
  return states.has('approval-responded') && !states.has('approval-requested')
}

const unsupported = (message: string) =>
  new ApiError(message, { code: 'REQUEST_INVALID', hint: 'Send a new message with sendMessage' })

function textOf(message: UIMessage | undefined): string {
  const parts = message?.parts ?? []
  if (message?.role !== 'user') throw unsupported('the last message is not of the user')
  if (parts.some(part => part.type === 'file')) throw unsupported('files cannot be sent to a chat')
  return parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
}

/** A turn without output stores no conversation. */
function conversationOf(messages: readonly UIMessage[]): string | undefined {
  const stored = messages.filter(({ role, parts }) => role === 'assistant' && parts.some(part => part.type !== 'step-start'))
  const id = (stored.at(-1)?.metadata as ChatMetadata | undefined)?.conversation_id
  return typeof id === 'string' ? id : undefined
}

/** Tools can ask at the same time. After a question, others can follow within this time. */
const GATHER_MS = 100

/** One turn of the server. It becomes several streams of the AI SDK if tools ask. */
class Turn {
  readonly #client: Client
  readonly #stop = new AbortController()
  readonly #events: AsyncIterator<ChatEvent>
  readonly #chunks = new ChunkWriter()
  #next: Promise<IteratorResult<ChatEvent>> | undefined
  #requestId = ''
  /** Tool calls that ask and have no answer. */
  readonly #asked = new Set<string>()

  constructor(client: Client, request: ChatStreamRequest) {
    this.#client = client
    this.#events = client.chat.stream(request, { signal: this.#stop.signal })[Symbol.asyncIterator]()
  }

  /** Sends the approvals that a message contains. */
  async answer({ parts }: UIMessage): Promise<void> {
    for (const { approval } of parts as readonly { readonly approval?: GivenApproval }[]) {
      if (approval?.approved === undefined || !this.#asked.has(approval.id)) continue
      const { id: call_id, approved: allow, reason } = approval
      if (!allow) this.#chunks.denied.add(call_id)
      const answer = { request_id: this.#requestId, call_id, allow, ...(reason === undefined ? {} : { reason }) }
      await this.#client.chat.answer(answer).catch((error: unknown) => {
        // it has timed out meanwhile: the result of the tool says so
        if (!isApiError(error, 'INVALID_VALUE') || error.status !== 404) throw error
      })
      this.#asked.delete(call_id)
    }
  }

  /** The events up to the next question, or to the end. `onAsk` is called before the stream ends with a question. */
  stream(signal: AbortSignal | undefined, onAsk: () => void): ReadableStream<UIMessageChunk> {
    const abort = () => this.close(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
    const leave = () => signal?.removeEventListener('abort', abort)
    return new ReadableStream<UIMessageChunk>({
      pull: async controller => {
        try {
          if (await this.#pull(controller, onAsk)) return
          controller.close()
        } catch (error) {
          controller.error(error)
        }
        leave()
      },
      cancel: reason => {
        leave()
        this.close(reason)
      },
    })
  }

  close(reason?: unknown): void {
    this.#stop.abort(reason)
    this.#events.return?.().catch(() => {}) // it can be aborted already
  }

  /** Enqueues the chunks of an event. Returns false at the end of the stream. */
  async #pull(controller: ReadableStreamDefaultController<UIMessageChunk>, onAsk: () => void): Promise<boolean> {
    if (!this.#next) {
      this.#next = this.#events.next()
      this.#next.catch(() => {}) // it is awaited later if the stream pauses
    }
    const step = this.#asked.size > 0 ? await within(GATHER_MS, this.#next) : await this.#next
    if (!step) {
      for (const chunk of this.#chunks.pause()) controller.enqueue(chunk)
      onAsk()
      return false
    }
    this.#next = undefined
    if (step.done) return false
    const event = step.value
    if (event.type === 'start') this.#requestId = event.request_id
    if (event.type === 'ask') this.#asked.add(event.call_id)
    if (event.type === 'tool_result') this.#asked.delete(event.call_id)
    for (const chunk of this.#chunks.of(event)) controller.enqueue(chunk)
    return true
  }
}

interface GivenApproval {
  readonly id: string
  readonly approved?: boolean
  readonly reason?: string
}

/** Resolves to undefined if the value takes longer. */
async function within<T>(ms: number, value: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>(resolve => (timer = setTimeout(resolve, ms, undefined)))
  try {
    return await Promise.race([value, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Translates events of svc into chunks of the AI SDK. */
class ChunkWriter {
  /** Tool calls that a person has denied. */
  readonly denied = new Set<string>()
  #texts = 0
  #isTextOpen = false
  #isFailed = false

  /** The end of a stream whose turn goes on. */
  pause(): UIMessageChunk[] {
    return [...this.#endText(), { type: 'finish', finishReason: 'tool-calls' }]
  }

  of(event: ChatEvent): UIMessageChunk[] {
    switch (event.type) {
      case 'start': {
        const { conversation_id, request_id, provider, model } = event
        const messageMetadata: ChatMetadata = { conversation_id, request_id, provider, model }
        return [{ type: 'start', messageMetadata }, { type: 'start-step' }]
      }
      case 'token':
        return this.#text(event.content)
      case 'tool_call':
        return [...this.#endText(), inputOf(event)]
      case 'ask': {
        // a plugin can have changed the arguments
        const request = { type: 'tool-approval-request', approvalId: event.call_id, toolCallId: event.call_id } as const
        return [...this.#endText(), inputOf(event), request]
      }
      case 'tool_result':
        return [...this.#endText(), this.#outputOf(event)]
      case 'error':
        this.#isFailed = true
        return [...this.#endText(), { type: 'error', errorText: event.error }]
      case 'end':
        return this.#end(event)
    }
  }

  #text(delta: string): UIMessageChunk[] {
    if (!this.#isTextOpen) this.#texts += 1
    const id = `text-${this.#texts}`
    const begin: UIMessageChunk[] = this.#isTextOpen ? [] : [{ type: 'text-start', id }]
    this.#isTextOpen = true
    return [...begin, { type: 'text-delta', id, delta }]
  }

  #endText(): UIMessageChunk[] {
    if (!this.#isTextOpen) return []
    this.#isTextOpen = false
    return [{ type: 'text-end', id: `text-${this.#texts}` }]
  }

  #outputOf({ call_id: toolCallId, success, result, error }: Schemas['ToolResultEvent']): UIMessageChunk {
    if (success) return { type: 'tool-output-available', toolCallId, output: result, dynamic: true }
    if (this.denied.has(toolCallId)) return { type: 'tool-output-denied', toolCallId }
    return { type: 'tool-output-error', toolCallId, errorText: error ?? 'the tool failed', dynamic: true }
  }

  #end({ status, provider, model, tokens_used, duration_ms }: Schemas['EndEvent']): UIMessageChunk[] {
    const messageMetadata: ChatMetadata = { status, provider, model, tokens_used, duration_ms }
    const finish = { type: 'finish', finishReason: status === 'completed' ? 'stop' : 'error', messageMetadata } as const
    if (status === 'cancelled') return [...this.#endText(), { type: 'abort' }]
    return this.#isFailed ? [] : [...this.#endText(), { type: 'finish-step' }, finish]
  }
}

const inputOf = ({ call_id, tool, arguments: input }: Schemas['ToolCallEvent'] | Schemas['AskEvent']): UIMessageChunk => ({
  type: 'tool-input-available',
  toolCallId: call_id,
  toolName: tool,
  input,
  dynamic: true,
})
