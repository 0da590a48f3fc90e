import { randomUUID } from 'node:crypto'
import { type LogOptions, messageOf, type SvcError, systemUse } from '@svc/core'
import { Chat } from '@svc/core/contracts'
import { ensureHome } from '@svc/core/processes'
import { type ChatBody, type ChatEvent, errorEvent, eventOf, explain, toldOf, turnOf } from '@svc/wire'
import type { Partner } from './chat-partner.ts'
import { refused } from './errors.ts'
import { startInnerHost } from './inner-host.ts'
import { readable } from './log-output.ts'
import type { ServeOptions } from './serve-flags.ts'
import { findSettings } from './settings.ts'

/** Chats with a host of this process, which listens nowhere. Throws START_FAILED. */
export async function localPartner(options: ServeOptions): Promise<Partner> {
  const home = ensureHome()
  const inner = await startInnerHost(await findSettings(options), home, options.debug === true ? LOG : undefined)
  const chat = inner.host.service(Chat)
  return {
    name: 'a host of its own',
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      const use = systemUse(signal, randomUUID())
      try {
        for await (const event of chat.stream(turnOf(ask), use))
          yield event.type === 'error' ? errorEvent(explain(event.error, use.requestId).record) : eventOf(event)
      } catch (error) {
        throw signal.aborted ? error : refusal(error, use.requestId)
      }
    },
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  }
}

const LOG: LogOptions = { destination: { write: line => void process.stderr.write(readable(line, process.stderr)) } }

/** An error as a server would tell it; but who runs the host may know what went wrong in it. */
function refusal(error: unknown, requestId: string): SvcError {
  const { record, internal } = explain(toldOf(error), requestId)
  const { mend } = Object(error) as Partial<SvcError>
  return refused(internal ? { ...record, error: messageOf(error) } : record, { mend, cause: error })
}
