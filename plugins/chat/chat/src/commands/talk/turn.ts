import { styleText } from 'node:util'
import { type ChatBody, type ChatEvent, errorEvent } from '@svc/api-types'
import {
  clipped,
  errorFromRecord,
  errorPage,
  INTERRUPTED,
  milliseconds,
  oneLine,
  type TerminalUser,
  problemsOf,
  visible,
} from '@svc/cli/command'
import { messageOf } from '@svc/core'
import type { Partner } from './partner.ts'

/** Runs turns. */
export interface TurnOutput {
  readonly partner: Partner
  readonly screen: Screen
  /** Reports failures as events, too. */
  readonly json: boolean
  /** Absent without a terminal. Then the chat denies the call. */
  readonly asker?: Asker | undefined
}

/** The outcome of a turn, and the conversation for the next one. */
export interface TurnOutcome {
  readonly code: number
  readonly conversationId: string | undefined
  /** The conversation to continue does not exist. */
  readonly lost: boolean
}

/** Runs a turn and shows it, with its errors. */
export async function turn(output: TurnOutput, ask: ChatBody, signal: AbortSignal): Promise<TurnOutcome> {
  const seen: Seen = { conversationId: undefined, requestId: '', status: '', said: false }
  const said = output.asker ? { ...ask, interactive: true } : ask
  try {
    await follow(output, said, seen, signal)
  } catch (error) {
    output.screen.end()
    if (!signal.aborted) showFailure(output, error)
    return outcome(ask, seen, signal, !signal.aborted && isLost(error))
  }
  return outcome(ask, seen, signal, false)
}

function outcome(ask: ChatBody, seen: Seen, { aborted }: AbortSignal, lost: boolean): TurnOutcome {
  const code = seen.status === 'completed' ? 0 : 1
  return { code: aborted ? INTERRUPTED : code, conversationId: ask.conversation_id ?? keptIn(seen, aborted), lost }
}

/** The conversation of a first turn exists only once a turn is stored: not before there is output, and not if the stream broke. */
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

async function follow({ partner, screen, asker }: TurnOutput, ask: ChatBody, seen: Seen, signal: AbortSignal): Promise<void> {
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

function showFailure({ screen, json }: TurnOutput, error: unknown): void {
  if (json) screen.show(failureEvent(error))
  else process.stderr.write(`${errorPage(error)}\n`)
}

/** A thrown value as an event. */
export function failureEvent(error: unknown): ChatEvent {
  const [{ code, message, details }] = problemsOf(error)
  return errorEvent({ success: false, error: message, error_code: code, details })
}

type AskEvent = Extract<ChatEvent, { type: 'ask' }>
interface Decision {
  readonly allow: boolean
  readonly reason?: string
}

/** Asks the user about tool calls. An answer holds for one call, or for a tool in this chat. */
interface Asker {
  /** Returns `undefined` if the signal aborts. */
  decide(event: AskEvent, signal: AbortSignal): Promise<Decision | undefined>
  /** Forgets the allowed tools when a new conversation starts. */
  forget(): void
}

const CHOICES = '[y]es / [n]o / [a]lways this tool in this chat: '
const REFUSED = 'the user did not allow it'

export function createAsker(person: TerminalUser, note: Screen['note']): Asker {
  const always = new Set<string>()
  return {
    forget: () => always.clear(),
    async decide(event, signal) {
      const tool = visible(event.tool)
      if (always.has(event.tool)) {
        note(`  ${tool} is allowed in this chat`)
        return { allow: true }
      }
      note(askText(event), 'yellow')
      for (;;) {
        const answer = await person.question(`  ${tool}: ${CHOICES}`, signal)
        if (answer === undefined) return signal.aborted ? undefined : { allow: false, reason: REFUSED }
        const decision = decisionOf(answer)
        if (decision === 'always') always.add(event.tool)
        if (decision !== undefined) return decision === 'always' ? { allow: true } : decision
      }
    },
  }
}

/** The model receives the text after "no" as the reason. */
function decisionOf(answer: string): Decision | 'always' | undefined {
  const [, word = '', rest = ''] = /^\s*(\w+)[\s,:]*(.*)$/s.exec(answer) ?? []
  if (/^(n|no)$/i.test(word)) return { allow: false, reason: rest.trim() || REFUSED }
  if (rest.trim() !== '') return undefined
  if (/^(y|yes)$/i.test(word)) return { allow: true }
  return /^(a|always)$/i.test(word) ? 'always' : undefined
}

/** The questions of a turn, asked one after the other while the turn runs. */
interface Questions extends AsyncDisposable {
  put(requestId: string, event: AskEvent): void
  /** The call has ended without an answer. */
  drop(callId: string): void
}

function openQuestions(partner: Partner, asker: Asker, note: Screen['note'], signal: AbortSignal): Questions {
  const open = new Map<string, AbortController>()
  const ending = new AbortController()
  let last = Promise.resolve()
  const settle = async (requestId: string, event: AskEvent, dropped: AbortSignal) => {
    const all = AbortSignal.any([signal, ending.signal, dropped])
    const decision = all.aborted ? undefined : await asker.decide(event, all)
    open.delete(event.call_id)
    if (!decision) return
    const answer = { request_id: requestId, call_id: event.call_id, ...decision }
    await partner.answer(answer, signal).catch((error: unknown) => {
      if (!all.aborted) note(`  failed to send the answer: ${oneLine(messageOf(error))}`)
    })
  }
  return {
    put(requestId, event) {
      const dropped = new AbortController()
      open.set(event.call_id, dropped)
      last = last.then(() => settle(requestId, event, dropped.signal))
    },
    drop: callId => open.get(callId)?.abort(),
    async [Symbol.asyncDispose]() {
      ending.abort()
      await last
    },
  }
}

/** Shows a turn: the reply on the standard output, everything else on the standard error stream. */
interface Screen {
  show(event: ChatEvent): void
  /** Writes a line about the chat itself. */
  readonly note: (text: string, colour?: Colour) => void
  /** Ends the line of an incomplete reply. */
  end(): void
}

type Colour = 'gray' | 'green' | 'red' | 'yellow'

/** Writes output, which can have to interrupt the line editor. */
type Beside = (write: () => void) => void

export const jsonScreen = (): Screen => ({
  show: event => void process.stdout.write(`${JSON.stringify(event)}\n`),
  note: text => void process.stderr.write(`${text}\n`),
  end() {},
})

const SHOWN_ARGUMENTS = 200
/** The user must see a call to decide about it. */
const ASKED_ARGUMENTS = 2_000
const SHOWN_ERROR = 300

export function textScreen(beside: Beside = write => write()): Screen {
  const [out, aside] = [process.stdout, process.stderr]
  let midLine = false
  const end = () => {
    if (midLine) out.write('\n')
    midLine = false
  }
  const note = (text: string, colour: Colour = 'gray') =>
    beside(() => {
      if (out.isTTY) end()
      aside.write(`${styleText(colour, text, { stream: aside })}\n`)
    })
  return {
    end,
    note,
    show(event) {
      switch (event.type) {
        case 'token':
          midLine = event.content === '' ? midLine : !event.content.endsWith('\n')
          return beside(() => out.write(out.isTTY ? obeyedByNone(event.content) : event.content))
        case 'tool_call':
          return note(`→ ${callText(event, SHOWN_ARGUMENTS)}`)
        case 'tool_result':
          return note(resultText(event), event.success ? 'green' : 'red')
        case 'error':
          end()
          return void aside.write(`${errorPage(errorFromRecord(event))}\n`)
        case 'end':
          end()
          if (aside.isTTY)
            note(`${event.provider}/${event.model}, ${tokensText(event.tokens_used)}, ${milliseconds(event.duration_ms)}`)
          return
        case 'start':
        case 'ask': // shown when the question is asked
          return
      }
    },
  }
}

/** The text of a model can contain control characters, which a terminal would execute. */
const obeyedByNone = (text: string) => text.replaceAll(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')

const callText = ({ tool, arguments: given }: { readonly tool: string; readonly arguments: object }, most: number) =>
  `${visible(tool)} ${clipped(visible(JSON.stringify(given)), most)}`

/** All arguments, for the decision of the user. */
const askText = (event: Extract<ChatEvent, { type: 'ask' }>): string =>
  [`? ${callText(event, ASKED_ARGUMENTS)}`, ...unshown(event), `  ${visible(event.question)}`].join('\n')

/** States what is cut off, because it can be the decisive part. */
function unshown({ arguments: given }: { readonly arguments: object }): string[] {
  const all = visible(JSON.stringify(given)).length
  return all > ASKED_ARGUMENTS ? [`  only ${ASKED_ARGUMENTS} of ${all} characters are shown`] : []
}

function resultText({ tool, success, error, duration_ms: ms }: Extract<ChatEvent, { type: 'tool_result' }>): string {
  const head = `${success ? '✓' : '✗'} ${visible(tool)} ${milliseconds(ms)}`
  return success ? head : `${head}: ${clipped(visible(error ?? ''), SHOWN_ERROR)}`
}

/** `480 tokens, 300 of them cached` */
const tokensText = ({ total, cached }: { readonly total: number; readonly cached?: number }) =>
  `${total} tokens${cached === undefined ? '' : `, ${cached} of them cached`}`
