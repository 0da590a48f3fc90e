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
}

/** A message and its reply. */
export interface Turn {
  readonly key: string
  readonly message: string
  readonly pieces: readonly Piece[]
  readonly state: 'open' | 'completed' | 'failed' | 'cancelled'
  readonly start?: Schemas['StartEvent']
  readonly end?: Schemas['EndEvent']
  readonly problem?: Problem
}

export interface Chat {
  readonly conversation?: string | undefined
  readonly turns: readonly Turn[]
}

/** What is needed to find a turn again after the page was loaded again. */
interface OpenTurn {
  readonly turnId: string
  readonly message: string
}

const KEPT = 'svc-open-turn'

/** The chat of this tab. It lives outside of its page, so that a reply goes on while the reader looks at another. */
export const chat: Value<Chat> = createValue<Chat>({ turns: [] })

export const isOpen = ({ turns }: Chat): boolean => turns.at(-1)?.state === 'open'

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
      return { ...turn, problem: { message: event.error, code: event.error_code } }
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

function change(key: string, how: (turn: Turn) => Turn): void {
  const { conversation, turns } = chat.get()
  const next = turns.map(turn => (turn.key === key ? how(turn) : turn))
  const start = next.find(turn => turn.key === key)?.start
  chat.set({ conversation: start?.conversation_id ?? conversation, turns: next })
}

/** Sends a message. The reply appears in `chat`. */
export async function send(request: Omit<ChatStreamRequest, 'interactive' | 'forms' | 'detach'>): Promise<void> {
  const key = crypto.randomUUID()
  const { conversation, turns } = chat.get()
  chat.set({ conversation, turns: [...turns, { key, message: request.message, pieces: [], state: 'open' }] })
  const body = { ...request, ...(conversation === undefined ? {} : { conversation_id: conversation }) }
  // detached: leaving the page, or loading it again, does not end the turn
  await follow(key, request.message, client.chat.stream({ ...body, interactive: true, forms: true, detach: true }))
}

/** Continues the turn that was open when the page was loaded again. */
export async function continueTurn(): Promise<void> {
  const kept = keptTurn()
  if (!kept || chat.get().turns.length > 0) return
  const key = crypto.randomUUID()
  chat.set({ turns: [{ key, message: kept.message, pieces: [], state: 'open' }] })
  await follow(key, kept.message, client.chat.resume(kept.turnId))
}

/** The ids of the open turns that this page reads; undefined until the server has named them. `true`: to be stopped as soon as it has. */
const reading = new Map<string, string | true | undefined>()

async function follow(key: string, message: string, stream: ChatStream): Promise<void> {
  let waiting: Schemas['ChatEvent'][] = []
  let isPlanned = false
  const flush = () => {
    isPlanned = false
    const events = waiting
    waiting = []
    change(key, turn => events.reduce(withEvent, turn))
  }
  reading.set(key, undefined)
  try {
    for await (const event of stream) {
      if (event.type === 'start') {
        keep({ turnId: event.turn_id, message })
        if (reading.get(key) === true) void cancel(event.turn_id)
        reading.set(key, event.turn_id)
      }
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
    const { code, hint } = factsOf(error)
    if (isApiError(error, 'TURN_LOST') && chat.get().turns.length === 1 && chat.get().turns[0]!.pieces.length === 0)
      return chat.set({ turns: [] }) // it ended long ago
    change(key, turn => ({ ...turn, state: 'failed', problem: { message: messageOf(error), code, hint } }))
  } finally {
    reading.delete(key)
    if (keptTurn()?.turnId === stream.turnId) keep(undefined)
  }
}

/** Ends the open turn. What it has said is stored. */
export async function stop(): Promise<void> {
  const key = chat.get().turns.at(-1)?.key
  if (key === undefined || !reading.has(key)) return
  const turnId = reading.get(key)
  if (typeof turnId === 'string') await cancel(turnId)
  else reading.set(key, true)
}

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

export const clear = (): void => {
  if (!isOpen(chat.get())) chat.set({ turns: [] })
}

/** Begins with a conversation that exists. */
export const continueConversation = (conversation: string): void => {
  if (!isOpen(chat.get())) chat.set({ conversation, turns: [] })
}

function keep(turn: OpenTurn | undefined): void {
  try {
    if (turn) sessionStorage.setItem(KEPT, JSON.stringify(turn))
    else sessionStorage.removeItem(KEPT)
  } catch {
    // storage is off: a reload of the page loses the turn
  }
}

function keptTurn(): OpenTurn | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}
