import { randomUUID } from 'node:crypto'
import { messageOf, type SvcError, systemUse } from '@svc/core'
import { Chat } from '@svc/core/contracts'
import { answerOf, type ChatBody, type ChatEvent, errorEvent, eventOf, explain, toldOf, turnOf } from '@svc/wire'
import { localCatalog, startOwnHost } from './catalog-local.ts'
import type { Partner } from './chat-partner.ts'
import { errorFromRecord } from './command/error-record.ts'
import type { ServeOptions } from './serve-flags.ts'

/** Chats with a host of this process, which listens nowhere. Throws START_FAILED. */
export async function localPartner(options: ServeOptions): Promise<Partner> {
  const inner = await startOwnHost(options)
  const chat = inner.host.service(Chat)
  return {
    catalog: localCatalog(inner.host),
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      const use = systemUse(signal, randomUUID())
      try {
        for await (const event of chat.stream(turnOf(ask), use))
          yield event.type === 'error' ? errorEvent(explain(event.error, use.requestId).record) : eventOf(event)
      } catch (error) {
        throw signal.aborted ? error : refusal(error, use.requestId)
      }
    },
    answer: (answer, signal) => chat.answer(answerOf(answer), systemUse(signal, randomUUID())),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  }
}

/** An error as a server would tell it; but who runs the host may know what went wrong in it. */
function refusal(error: unknown, requestId: string): SvcError {
  const { record, internal } = explain(toldOf(error), requestId)
  const { mend } = Object(error) as Partial<SvcError>
  return errorFromRecord(internal ? { ...record, error: messageOf(error) } : record, { mend, cause: error })
}
