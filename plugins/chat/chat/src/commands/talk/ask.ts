import { oneLine, type Person, visible } from '@svc/cli/command'
import { messageOf } from '@svc/core'
import type { ChatEvent } from '@svc/api-types'
import type { Partner } from './partner.ts'
import { askText, type Screen } from './screen.ts'

type AskEvent = Extract<ChatEvent, { type: 'ask' }>
interface Decision {
  readonly allow: boolean
  readonly reason?: string
}

/** Decides about tool calls in place of the chat: a person does, once, or for a tool in all of this chat. */
export interface Asker {
  /** None where the signal aborts. */
  decide(event: AskEvent, signal: AbortSignal): Promise<Decision | undefined>
  /** Another chat begins: what was allowed for this one is forgotten. */
  forget(): void
}

const CHOICES = '[y]es / [n]o / [a]lways this tool in this chat: '
const REFUSED = 'the user did not allow it'

export function createAsker(person: Person, note: Screen['note']): Asker {
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

/** What stands behind a no is told to the model. */
function decisionOf(answer: string): Decision | 'always' | undefined {
  const [, word = '', rest = ''] = /^\s*(\w+)[\s,:]*(.*)$/s.exec(answer) ?? []
  if (/^(n|no)$/i.test(word)) return { allow: false, reason: rest.trim() || REFUSED }
  if (rest.trim() !== '') return undefined
  if (/^(y|yes)$/i.test(word)) return { allow: true }
  return /^(a|always)$/i.test(word) ? 'always' : undefined
}

/** The questions of one turn, asked one after the other while the turn goes on. */
export interface Questions extends AsyncDisposable {
  put(requestId: string, event: AskEvent): void
  /** The call has ended without its answer. */
  drop(callId: string): void
}

export function openQuestions(partner: Partner, asker: Asker, note: Screen['note'], signal: AbortSignal): Questions {
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
      if (!all.aborted) note(`  the answer did not arrive: ${oneLine(messageOf(error))}`)
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
