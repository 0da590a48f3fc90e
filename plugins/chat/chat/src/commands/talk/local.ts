import { randomUUID } from 'node:crypto'
import { errorFromRecord } from '@svc/cli/command'
import { messageOf, type SvcError, systemContext } from '@svc/core'
import { Chat, type CommandContext, type CommandHostOptions } from '@svc/core/contracts'
import { answerOf, type ChatBody, type ChatEvent, errorEvent, eventOf, explain, toPublicError, turnOf } from '@svc/api-types'
import { localCatalog } from '../catalog/local.ts'
import type { Partner } from './partner.ts'

/** Chats with a host of this process, which listens nowhere. Throws START_FAILED. */
export async function localPartner(command: CommandContext, options: CommandHostOptions): Promise<Partner> {
  const host = await command.host(options)
  const chat = host.service(Chat)
  return {
    catalog: localCatalog(host),
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      const ctx = systemContext(signal, randomUUID())
      try {
        for await (const event of chat.stream(turnOf(ask), ctx))
          yield event.type === 'error' ? errorEvent(explain(event.error, ctx.requestId).record) : eventOf(event)
      } catch (error) {
        throw signal.aborted ? error : refusal(error, ctx.requestId)
      }
    },
    answer: (answer, signal) => chat.answer(answerOf(answer), systemContext(signal, randomUUID())),
  }
}

/** An error as a server would tell it; but who runs the host may know what went wrong in it. */
function refusal(error: unknown, requestId: string): SvcError {
  const { record, internal } = explain(toPublicError(error), requestId)
  const { hint } = Object(error) as Partial<SvcError>
  return errorFromRecord(internal ? { ...record, error: messageOf(error) } : record, { hint, cause: error })
}
