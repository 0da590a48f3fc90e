import { errorPage, INTERRUPTED, problemsOf } from '@svc/cli/command'
import { type ChatBody, type ChatEvent, errorEvent } from '@svc/api-types'
import { type Asker, openQuestions } from './ask.ts'
import type { Partner } from './partner.ts'
import type { Screen } from './screen.ts'

/** Where turns happen. */
export interface Room {
  readonly partner: Partner
  readonly screen: Screen
  /** Failures are events as well. */
  readonly json: boolean
  /** Absent where nobody can be asked: the chat denies then. */
  readonly asker?: Asker | undefined
}

/** How a turn went, and the conversation that the next one may go on with. */
export interface Outcome {
  readonly code: number
  readonly conversationId: string | undefined
  /** The conversation that was to go on is not there. */
  readonly lost: boolean
}

/** One turn, shown. What fails is shown as well. */
export async function turn(room: Room, ask: ChatBody, signal: AbortSignal): Promise<Outcome> {
  const seen: Seen = { conversationId: undefined, requestId: '', status: '', said: false }
  const said = room.asker ? { ...ask, interactive: true } : ask
  try {
    await follow(room, said, seen, signal)
  } catch (error) {
    room.screen.end()
    if (!signal.aborted) tellFailure(room, error)
    return outcome(ask, seen, signal, !signal.aborted && isLost(error))
  }
  return outcome(ask, seen, signal, false)
}

function outcome(ask: ChatBody, seen: Seen, { aborted }: AbortSignal, lost: boolean): Outcome {
  const code = seen.status === 'completed' ? 0 : 1
  return { code: aborted ? INTERRUPTED : code, conversationId: ask.conversation_id ?? keptIn(seen, aborted), lost }
}

/** The conversation of a first turn is there once something is kept in it: not before there is output, and not where the stream broke. */
const keptIn = ({ conversationId, status, said }: Seen, aborted: boolean) =>
  status === 'completed' || (said && (status !== '' || aborted)) ? conversationId : undefined

function isLost(error: unknown): boolean {
  const [{ details }] = problemsOf(error)
  return details.field === 'conversation_id' && details.reason === 'not found'
}

interface Seen {
  conversationId: string | undefined
  requestId: string
  status: string
  /** Whether there was any output. */
  said: boolean
}

async function follow({ partner, screen, asker }: Room, ask: ChatBody, seen: Seen, signal: AbortSignal): Promise<void> {
  await using questions = asker && openQuestions(partner, asker, screen.note, signal)
  for await (const event of partner.ask(ask, signal)) {
    if (event.type === 'tool_result') questions?.drop(event.call_id)
    screen.show(event)
    if (event.type === 'start') {
      seen.conversationId = event.conversation_id
      seen.requestId = event.request_id
    }
    seen.said ||= event.type === 'tool_call' || (event.type === 'token' && event.content !== '')
    if (event.type === 'ask') questions?.put(seen.requestId, event)
    if (event.type === 'end') seen.status = event.status
  }
}

function tellFailure({ screen, json }: Room, error: unknown): void {
  if (json) screen.show(failureEvent(error))
  else process.stderr.write(`${errorPage(error)}\n`)
}

/** Whatever was thrown, as an event. */
export function failureEvent(error: unknown): ChatEvent {
  const [{ code, message, details }] = problemsOf(error)
  return errorEvent({ success: false, error: message, error_code: code, details })
}
