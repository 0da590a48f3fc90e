import { createInterface, type Interface } from 'node:readline/promises'
import { svcError } from '@svc/core'
import { type ChatBody, type ChatEvent, errorEvent } from '@svc/wire'
import type { Partner } from './chat-partner.ts'
import type { Screen } from './chat-screen.ts'
import { abortOnInterrupt, INTERRUPTED } from './interrupt.ts'
import { printError, problemsOf } from './report-error.ts'

/** How a turn went, and the conversation it belongs to. */
interface Outcome {
  readonly code: number
  readonly conversationId: string | undefined
}

/** One turn, shown. What fails is shown as well. */
async function turn(partner: Partner, ask: ChatBody, screen: Screen, signal: AbortSignal, json: boolean): Promise<Outcome> {
  let conversationId = ask.conversation_id
  let status = ''
  try {
    for await (const event of partner.ask(ask, signal)) {
      screen.show(event)
      if (event.type === 'start') conversationId = event.conversation_id
      if (event.type === 'end') status = event.status
    }
  } catch (error) {
    screen.end()
    if (signal.aborted) return { code: INTERRUPTED, conversationId }
    if (json) screen.show(failureEvent(error))
    else printError(error)
    return { code: 1, conversationId }
  }
  if (signal.aborted) return { code: INTERRUPTED, conversationId }
  return { code: status === 'completed' ? 0 : 1, conversationId }
}

function failureEvent(error: unknown): ChatEvent {
  const [{ code, message, details }] = problemsOf(error)
  return errorEvent({ success: false, error: message, error_code: code, details })
}

/** `svc chat "…"` and the pipe: one turn; Ctrl-C aborts it, a second one ends at once. */
export async function oneShot(partner: Partner, ask: ChatBody, screen: Screen, json: boolean): Promise<number> {
  using interrupt = abortOnInterrupt()
  return (await turn(partner, ask, screen, interrupt.signal, json)).code
}

/** A conversation on the terminal, until Ctrl-D. Ctrl-C aborts a turn; at the prompt, or once more, it ends. */
export async function converse(partner: Partner, ask: Omit<ChatBody, 'message'>, screen: Screen): Promise<number> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: '> ' })
  using interrupts = interruptsOf(lines)
  process.stderr.write(`Chatting with ${partner.name}. Ctrl-D ends.\n`)
  let conversationId = ask.conversation_id
  lines.prompt()
  for await (const line of lines) {
    if (line.trim() !== '') {
      const about = conversationId === undefined ? ask : { ...ask, conversation_id: conversationId }
      const done = await turn(partner, { ...about, message: line }, screen, interrupts.begin(), false)
      interrupts.end()
      conversationId = done.conversationId
    }
    if (!interrupts.closed) lines.prompt()
  }
  process.stdout.write('\n')
  return interrupts.ended ? INTERRUPTED : 0
}

/** On a terminal the line editor takes Ctrl-C. */
function interruptsOf(lines: Interface) {
  let running: AbortController | undefined
  let ended = false
  let closed = false
  lines.once('close', () => {
    closed = true
  })
  lines.on('SIGINT', () => {
    if (running?.signal.aborted) process.exit(INTERRUPTED)
    if (running) return running.abort(svcError('INTERRUPTED', 'interrupted'))
    ended = true
    lines.close()
  })
  return {
    get closed() {
      return closed
    },
    get ended() {
      return ended
    },
    begin() {
      running = new AbortController()
      return running.signal
    },
    end() {
      running = undefined
    },
    [Symbol.dispose]: () => lines.close(),
  }
}
