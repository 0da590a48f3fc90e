import { randomUUID } from 'node:crypto'
import { type LogOptions, systemUse } from '@svc/core'
import { Chat, type TurnRequest } from '@svc/core/contracts'
import { type Ask, type ChatEvent, eventOf, type Partner } from './chat-events.ts'
import { ensureHome } from '@svc/core/processes'
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
    async *ask(ask: Ask, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      for await (const event of chat.stream(turnOf(ask), systemUse(signal, randomUUID()))) yield eventOf(event)
    },
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  }
}

const LOG: LogOptions = { destination: { write: line => void process.stderr.write(readable(line, process.stderr)) } }

function turnOf({ conversation_id, max_tokens, ...rest }: Ask): TurnRequest {
  return {
    ...rest,
    ...(conversation_id === undefined ? {} : { conversationId: conversation_id }),
    ...(max_tokens === undefined ? {} : { maxTokens: max_tokens }),
  }
}
