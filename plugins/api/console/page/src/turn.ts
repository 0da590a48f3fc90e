import { isApiError, type ChatStream, type ChatStreamRequest, type Schemas } from '@svc/client'
import { client, factsOf, messageOf } from './api.ts'
import { createValue, type Value } from './value.ts'

export type Ask = Schemas['AskEvent']

/** A piece of a reply, in the order of the stream. */
export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'tool'
      readonly id: string
      readonly name: string
      readonly input: unknown
      readonly ask?: Ask
      readonly result?: Schemas['ToolResultEvent']
    }

interface Problem {
  readonly message: string
  readonly code?: string | undefined
  readonly hint?: string | undefined
  readonly requestId?: string | undefined
  /** The field of the request that the server has refused. */
  readonly field?: string | undefined
}

export type SentPart = NonNullable<ChatStreamRequest['parts']>[number]

/** A message and its reply. */
export interface Turn {
  readonly key: string
  readonly message: string
  readonly parts: readonly SentPart[]
  readonly pieces: readonly Piece[]
  readonly state: 'open' | 'completed' | 'failed' | 'cancelled'
  readonly start?: Schemas['StartEvent']
  readonly end?: Schemas['EndEvent']
  readonly problem?: Problem
}

export interface Chat {
  readonly conversation?: string | undefined
  /** The number of messages that the conversation had before the turns. */
  readonly earlier?: number | undefined
  readonly turns: readonly Turn[]
}

/** What is needed to find a turn again after the page was loaded again. */
interface OpenTurn extends Pick<Chat, 'conversation' | 'earlier'> {
  readonly turnId: string
  readonly message: string
}

export const isOpen = ({ turns }: Chat): boolean => turns.at(-1)?.state === 'open'

/** The number of messages of turns that have ended. A turn that failed is not stored. */
const storedOf = (turns: readonly Turn[]): number =>
  turns.filter(({ state }) => state === 'completed' || state === 'cancelled').length * 2

/** Adds an event to a turn. */
function withEvent(turn: Turn, event: Schemas['ChatEvent']): Turn {
  switch (event.type) {
    case 'start':
      return { ...turn, start: event }
    case 'token': {
      const last = turn.pieces.at(-1)
      if (last?.kind !== 'text') return { ...turn, pieces: [...turn.pieces, { kind: 'text', text: event.content }] }
      return { ...turn, pieces: [...turn.pieces.slice(0, -1), { kind: 'text', text: last.text + event.content }] }
    }
    case 'tool_call':
      return {
        ...turn,
        pieces: [...turn.pieces, { kind: 'tool', id: event.call_id, name: event.tool, input: event.arguments }],
      }
    case 'ask':
      return changeTool(turn, event, { ask: event })
    case 'tool_result':
      return changeTool(turn, event, { result: event })
    case 'error':
      return { ...turn, problem: { message: event.error, code: event.error_code, requestId: turn.start?.request_id } }
    case 'end':
      return { ...turn, end: event, state: event.status }
    default:
      return turn // a newer server can have more events
  }
}

/** A question can come before its tool call is known. */
function changeTool(
  turn: Turn,
  { call_id, tool, ...event }: { readonly call_id: string; readonly tool: string; readonly arguments?: unknown },
  change: Partial<Extract<Piece, { kind: 'tool' }>>
): Turn {
  const isIt = (piece: Piece) => piece.kind === 'tool' && piece.id === call_id
  const pieces: readonly Piece[] = turn.pieces.some(isIt)
    ? turn.pieces
    : [...turn.pieces, { kind: 'tool', id: call_id, name: tool, input: event.arguments ?? {} }]
  return { ...turn, pieces: pieces.map(piece => (isIt(piece) ? { ...piece, ...change } : piece) as Piece) }
}

type Sent = Omit<ChatStreamRequest, 'interactive' | 'forms' | 'detach' | 'conversation_id'>

/** A chat of this tab. It lives outside of its page, so that a reply goes on while the reader looks at another. */
export class ChatOfTab {
  readonly value: Value<Chat> = createValue<Chat>({ turns: [] })
  /** The name of the open turn in the storage of the tab. */
  readonly #kept: string
  /** The ids of the open turns that this page reads; undefined until the server has named them. `true`: to be stopped as soon as it has. */
  readonly #reading = new Map<string, string | true | undefined>()

  /** Until `earlier` is known. */
  #counting: Promise<void> | undefined

  constructor(kept: string) {
    this.#kept = kept
  }

  /** Sends a message. The reply appears in `value`. */
  async send(request: Sent): Promise<void> {
    const key = crypto.randomUUID()
    const before = this.value.get()
    const { conversation } = before
    const { message, parts = [] } = request
    this.value.set({ ...before, turns: [...before.turns, { key, message, parts, pieces: [], state: 'open' }] })
    await this.#counting
    const body = { ...request, ...(conversation === undefined ? {} : { conversation_id: conversation }) }
    // detached: leaving the page, or loading it again, does not end the turn
    await this.#follow(key, message, client.chat.stream({ ...body, interactive: true, forms: true, detach: true }))
  }

  /** Continues the turn that was open when the page was loaded again. */
  async continueTurn(): Promise<void> {
    const kept = keptTurn(this.#kept)
    const { conversation: shown, turns } = this.value.get()
    if (!kept || turns.length > 0 || (shown !== undefined && shown !== kept.conversation)) return
    const key = crypto.randomUUID()
    const { conversation, earlier } = kept
    this.value.set({ conversation, earlier, turns: [{ key, message: kept.message, parts: [], pieces: [], state: 'open' }] })
    await this.#follow(key, kept.message, client.chat.resume(kept.turnId))
  }

  /** Ends the open turn. What it has said is stored. */
  async stop(): Promise<void> {
    const key = this.value.get().turns.at(-1)?.key
    if (key === undefined || !this.#reading.has(key)) return
    const turnId = this.#reading.get(key)
    if (typeof turnId === 'string') await cancel(turnId)
    else this.#reading.set(key, true)
  }

  clear(): void {
    if (!isOpen(this.value.get())) this.value.set({ turns: [] })
  }

  /** Begins with a conversation that exists. */
  continueConversation(conversation: string): void {
    if (isOpen(this.value.get())) return
    this.value.set({ conversation, turns: [] })
    this.#counting = this.#count(conversation)
  }

  async #count(id: string): Promise<void> {
    try {
      const query = { detail: 'full', limit: 1 } as const
      const { message_count: earlier } = await client.get('/api/v1/conversations/{id}', { path: { id }, query })
      const now = this.value.get()
      if (now.conversation === id && now.earlier === undefined) this.value.set({ ...now, earlier })
    } catch {
      // what is wrong with the conversation, the answer to the next message says
    }
  }

  #change(key: string, how: (turn: Turn) => Turn): void {
    const { turns, ...before } = this.value.get()
    const next = turns.map(turn => (turn.key === key ? how(turn) : turn))
    const start = next.find(turn => turn.key === key)?.start
    this.value.set({ ...before, conversation: start?.conversation_id ?? before.conversation, turns: next })
  }

  async #follow(key: string, message: string, stream: ChatStream): Promise<void> {
    let waiting: Schemas['ChatEvent'][] = []
    let isPlanned = false
    const flush = () => {
      isPlanned = false
      const events = waiting
      waiting = []
      this.#change(key, turn => events.reduce(withEvent, turn))
    }
    this.#reading.set(key, undefined)
    try {
      for await (const event of stream) {
        if (event.type === 'start') this.#started(key, event, message)
        waiting.push(event)
        if (isPlanned) continue
        isPlanned = true
        // one change a frame, however fast the tokens come; a hidden page has no frames
        if (document.hidden) setTimeout(flush)
        else requestAnimationFrame(flush)
      }
      flush()
    } catch (error) {
      flush()
      this.#failed(key, error)
    } finally {
      this.#reading.delete(key)
      if (keptTurn(this.#kept)?.turnId === stream.turnId) keep(this.#kept, undefined)
    }
  }

  #started(key: string, { turn_id: turnId, conversation_id: conversation }: Schemas['StartEvent'], message: string): void {
    const { earlier = 0, turns } = this.value.get()
    keep(this.#kept, { turnId, message, conversation, earlier: earlier + storedOf(turns) })
    if (this.#reading.get(key) === true) void cancel(turnId)
    this.#reading.set(key, turnId)
  }

  /** The open turn of before has ended, and is a part of its conversation. */
  #lost(): void {
    const { conversation } = this.value.get()
    this.value.set({ turns: [] })
    if (conversation !== undefined) this.continueConversation(conversation)
  }

  #failed(key: string, error: unknown): void {
    const { turns } = this.value.get()
    if (isApiError(error, 'TURN_LOST') && turns.length === 1 && turns[0]!.pieces.length === 0) return this.#lost() // it ended long ago
    const field = isApiError(error, 'INVALID_VALUE') ? error.details.field : undefined
    const { code, hint, requestId } = factsOf(error)
    const problem = { message: messageOf(error), code, hint, requestId, field }
    this.#change(key, turn => ({ ...turn, state: 'failed', problem }))
  }
}

/** The chat of the playground. */
export const chat = new ChatOfTab('svc-open-turn')

/** The chat beside it, to compare two models. */
export const secondChat = new ChatOfTab('svc-open-turn-2')

/** A turn that has ended meanwhile cannot be cancelled. */
const cancel = (turnId: string): Promise<unknown> => client.chat.cancel(turnId).catch(() => {})

/** Answers a question of a tool. */
export async function answer(
  turn: Turn,
  ask: Ask,
  reply: { readonly allow: boolean; readonly content?: Record<string, unknown> }
): Promise<void> {
  await client.chat.answer({ request_id: turn.start!.request_id, call_id: ask.call_id, ...reply })
}

function keep(name: string, turn: OpenTurn | undefined): void {
  try {
    if (turn) sessionStorage.setItem(name, JSON.stringify(turn))
    else sessionStorage.removeItem(name)
  } catch {
    // storage is off: a reload of the page loses the turn
  }
}

function keptTurn(name: string): OpenTurn | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(name) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}
