import type { ChatTransport, FileUIPart, UIMessage, UIMessageChunk } from 'ai'
import type { ChatStream, ChatStreamRequest } from './chat.ts'
import type { Client } from './client.ts'
import { ApiError, isApiError } from './errors.ts'
import type { Schemas } from './paths.ts'

type ChatEvent = Schemas['ChatEvent']

export interface ChatTransportOptions {
  readonly client: Client
  /** Fields of each chat request, such as `model` or `profile`. `body` of `sendMessage` overrides them. */
  readonly body?: Partial<ChatStreamRequest>
  /**
   * Where the transport keeps the id of the open turn of each chat, so that `resumeStream` finds it after a reload of the page. Default:
   * `sessionStorage` in a browser, otherwise memory. The chat needs the same `id` in `useChat` as before.
   */
  readonly storage?: TurnStorage
}

/** A part of `Storage` of browsers. */
export interface TurnStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
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
 *
 * Lost connections are resumed without the AI SDK. `resumeStream`, and `resume: true` of `useChat`, continue a turn after a reload of
 * the page. `stop` cancels the turn, also with `detach: true` in the body.
 */
export function createChatTransport<M extends UIMessage>(options: ChatTransportOptions): ChatTransport<M> {
  const { client, body: defaults } = options
  const chats = new OpenTurns(options.storage ?? defaultStorage())
  return {
    // a message whose first half is there already is replaced
    resumeStreamIsReplay: true,
    async sendMessages({ trigger, chatId, messageId, messages, abortSignal, body }) {
      const last = messages.at(-1)
      const open = chats.get(chatId)
      if (last?.role === 'assistant' && trigger === 'submit-message') {
        if (!open?.isWaiting) throw unsupported('the turn that asked for the approval has ended')
        await open.answer(last)
        return open.stream(abortSignal)
      }
      await open?.cancel()
      if (trigger !== 'submit-message' || messageId !== undefined) throw unsupported('svc cannot generate a reply anew')
      const conversation = conversationOf(messages)
      const request = {
        ...defaults,
        ...body,
        ...contentOf(last),
        ...(conversation === undefined ? {} : { conversation_id: conversation }),
        interactive: true,
      }
      const turn = new Turn(client, signal => client.chat.stream(request, { signal, whenLeft: 'close' }))
      return chats.open(chatId, turn).stream(abortSignal)
    },
    async reconnectToStream({ chatId, abortSignal }) {
      const id = chats.idOf(chatId)
      if (id === undefined) return null
      chats.get(chatId)?.leave()
      const turn = chats.open(chatId, new Turn(client, signal => client.chat.resume(id, { signal })))
      if (await turn.isThere()) return turn.stream(abortSignal)
      chats.forget(chatId, turn)
      return null
    },
  }
}

/** The open turns of the chats of a transport. Their ids survive a reload of the page. */
class OpenTurns {
  readonly #storage: TurnStorage
  readonly #turns = new Map<string, Turn>()

  constructor(storage: TurnStorage) {
    this.#storage = storage
  }

  get(chatId: string): Turn | undefined {
    return this.#turns.get(chatId)
  }

  idOf(chatId: string): string | undefined {
    return this.#storage.getItem(keyOf(chatId)) ?? undefined
  }

  open(chatId: string, turn: Turn): Turn {
    this.#turns.set(chatId, turn)
    const isCurrent = () => this.#turns.get(chatId) === turn
    turn.follow({
      isCurrent,
      started: id => isCurrent() && this.#storage.setItem(keyOf(chatId), id),
      ended: () => this.forget(chatId, turn),
    })
    return turn
  }

  forget(chatId: string, turn: Turn): void {
    if (this.#turns.get(chatId) !== turn) return
    this.#turns.delete(chatId)
    this.#storage.removeItem(keyOf(chatId))
  }
}

const keyOf = (chatId: string) => `svc-turn-${chatId}`

function defaultStorage(): TurnStorage {
  try {
    const { sessionStorage } = globalThis as { readonly sessionStorage?: TurnStorage }
    // Node.js has one too, without a page that could be loaded again
    if (sessionStorage && 'document' in globalThis) return sessionStorage
  } catch {
    // the browser forbids it
  }
  const items = new Map<string, string>()
  return {
    getItem: key => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: key => void items.delete(key),
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

/** The text of a message, and its files, which have the content in their address. */
function contentOf(message: UIMessage | undefined): Pick<ChatStreamRequest, 'message' | 'parts'> {
  if (message?.role !== 'user') throw unsupported('the last message is not of the user')
  const text = message.parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n')
  const parts = message.parts.flatMap(part => (part.type === 'file' ? [filePartOf(part)] : []))
  return { message: text, ...(parts.length === 0 ? {} : { parts }) }
}

function filePartOf({ url, mediaType, filename }: FileUIPart): NonNullable<ChatStreamRequest['parts']>[number] {
  const [, data] = /^data:[^,]*;base64,(.*)$/s.exec(url) ?? []
  if (data === undefined) throw unsupported('a file is not a data URL in base64')
  const type = mediaType.startsWith('image/') ? 'image' : 'file'
  return { type, media_type: mediaType, data, ...(filename === undefined ? {} : { name: filename }) }
}

/** A turn without output stores no conversation. */
function conversationOf(messages: readonly UIMessage[]): string | undefined {
  const stored = messages.filter(({ role, parts }) => role === 'assistant' && parts.some(part => part.type !== 'step-start'))
  const id = (stored.at(-1)?.metadata as ChatMetadata | undefined)?.conversation_id
  return typeof id === 'string' ? id : undefined
}

/** Tools can ask at the same time. After a question, others can follow within this time. */
const GATHER_MS = 100
/** Longest time to wait for the end of a turn before the next begins. */
const CANCEL_MS = 5_000

/** Where a turn is kept. */
interface TurnKeeper {
  /** False once another turn, or another stream of the same, has taken its place. */
  isCurrent(): boolean
  started(id: string): void
  ended(): void
}

/** One turn of the server. It becomes several streams of the AI SDK if tools ask. */
class Turn {
  /** Whether the turn waits for approvals, so that another stream continues it. */
  isWaiting = false
  readonly #client: Client
  readonly #stop = new AbortController()
  readonly #source: ChatStream
  readonly #events: AsyncIterator<ChatEvent>
  readonly #chunks = new ChunkWriter()
  #keeper: TurnKeeper | undefined
  #next: Promise<IteratorResult<ChatEvent>> | undefined
  #requestId = ''
  #isOver = false
  /** Tool calls that ask and have no answer. */
  readonly #asked = new Set<string>()

  constructor(client: Client, open: (signal: AbortSignal) => ChatStream) {
    this.#client = client
    this.#source = open(this.#stop.signal)
    this.#events = this.#source[Symbol.asyncIterator]()
  }

  follow(keeper: TurnKeeper): void {
    this.#keeper = keeper
  }

  /** Whether the server still has the turn. */
  async isThere(): Promise<boolean> {
    try {
      return (await this.#peek()).done !== true
    } catch (error) {
      if (isApiError(error, 'TURN_LOST')) return false
      throw error
    }
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

  /** The events up to the next question, or to the end. An abort cancels the turn, unless another stream has taken its place. */
  stream(signal: AbortSignal | undefined): ReadableStream<UIMessageChunk> {
    this.isWaiting = false
    // the AI SDK aborts a stream just before it opens another in its place
    const end = (reason: unknown) =>
      queueMicrotask(() => (this.#keeper?.isCurrent() === false ? this.leave(reason) : void this.cancel(reason)))
    const abort = () => end(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
    const ignore = () => signal?.removeEventListener('abort', abort)
    return new ReadableStream<UIMessageChunk>({
      pull: async controller => {
        try {
          if (await this.#pull(controller)) return
          controller.close()
        } catch (error) {
          if (isApiError(error, 'TURN_LOST')) this.#keeper?.ended()
          controller.error(error)
        }
        ignore()
      },
      cancel: reason => {
        ignore()
        end(reason)
      },
    })
  }

  /** Ends the turn on the server. */
  async cancel(reason?: unknown): Promise<void> {
    const { turnId } = this.#source
    this.#keeper?.ended()
    this.leave(reason)
    if (turnId === undefined || this.#isOver) return
    this.#isOver = true
    // otherwise the server does it some time after the connection is closed
    await this.#client.chat.cancel(turnId, { timeoutMs: CANCEL_MS, retry: false }).catch(() => {})
  }

  /** Closes the connection. */
  leave(reason?: unknown): void {
    this.#stop.abort(reason)
    this.#events.return?.().catch(() => {}) // it can be aborted already
  }

  #peek(): Promise<IteratorResult<ChatEvent>> {
    if (!this.#next) {
      this.#next = this.#events.next()
      this.#next.catch(() => {}) // it is awaited later if the stream pauses
    }
    return this.#next
  }

  /** Enqueues the chunks of an event. Returns false at the end of the stream. */
  async #pull(controller: ReadableStreamDefaultController<UIMessageChunk>): Promise<boolean> {
    const next = this.#peek()
    const step = this.#asked.size > 0 ? await within(GATHER_MS, next) : await next
    if (!step) {
      for (const chunk of this.#chunks.pause()) controller.enqueue(chunk)
      this.isWaiting = true
      return false
    }
    this.#next = undefined
    if (step.done) return false
    this.#note(step.value)
    for (const chunk of this.#chunks.of(step.value)) controller.enqueue(chunk)
    return true
  }

  #note(event: ChatEvent): void {
    if (event.type === 'start') {
      this.#requestId = event.request_id
      this.#keeper?.started(event.turn_id)
    }
    if (event.type === 'ask') this.#asked.add(event.call_id)
    if (event.type === 'tool_result') this.#asked.delete(event.call_id)
    if (event.type !== 'end') return
    this.#isOver = true
    this.#keeper?.ended()
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
        const { turn_id: messageId, conversation_id, request_id, provider, model } = event
        const messageMetadata: ChatMetadata = { conversation_id, request_id, provider, model }
        return [{ type: 'start', messageId, messageMetadata }, { type: 'start-step' }]
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
