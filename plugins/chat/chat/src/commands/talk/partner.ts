import { randomUUID } from 'node:crypto'
import {
  type AnswerBody,
  answerOf,
  type ChatBody,
  type ChatEvent,
  errorEvent,
  eventOf,
  explain,
  toPublicError,
  turnOf,
} from '@svc/api-types'
import { errorFromRecord } from '@svc/cli/command'
import { messageOf, type SvcError, systemContext } from '@svc/core'
import { Chat, type CommandContext, type CommandHostOptions, type ServerClient } from '@svc/core/contracts'
import { type CommandCatalog, localCatalog, remoteCatalog } from '../catalog/open.ts'
import { streamBroken } from '../errors.ts'

/** A server, or a host in this process. Both use the events of the HTTP API. */
export interface Partner {
  readonly catalog: CommandCatalog
  /** Throws errors that occur before the turn begins. */
  ask(ask: ChatBody, signal: AbortSignal): AsyncIterable<ChatEvent>
  /** Answers an `ask` event of a running turn. */
  answer(answer: AnswerBody, signal: AbortSignal): Promise<void>
}

/** Chats with a host in this process, which opens no port. Throws START_FAILED. */
export async function localPartner(command: CommandContext, options: CommandHostOptions): Promise<Partner> {
  const host = await command.host(options)
  const chat = host.service(Chat)
  return {
    catalog: localCatalog(host),
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      const ctx = systemContext(signal, randomUUID())
      try {
        for await (const event of chat.stream(turnOf(ask), ctx)) {
          if (event.type === 'error') yield errorEvent(explain(event.error, ctx.requestId).record)
          else if (event.type !== 'reasoning') yield eventOf(event)
        }
      } catch (error) {
        throw signal.aborted ? error : refusal(error, ctx.requestId)
      }
    },
    answer: (answer, signal) => chat.answer(answerOf(answer), systemContext(signal, randomUUID())),
  }
}

/** An error in the form of the HTTP API, but with internal details, because the user runs the host. */
function refusal(error: unknown, requestId: string): SvcError {
  const { record, internal } = explain(toPublicError(error), requestId)
  const { hint } = Object(error) as Partial<SvcError>
  return errorFromRecord(internal ? { ...record, error: messageOf(error) } : record, { hint, cause: error })
}

/** Chats with a server over its HTTP API. */
export function remotePartner(server: ServerClient): Partner {
  return {
    catalog: remoteCatalog(server),
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      let ended = false
      for await (const { data } of server.stream('POST', '/api/v1/chat/stream', { signal, body: ask })) {
        // events of a svc server; other data is shown unchanged
        const event = JSON.parse(data) as ChatEvent
        ended ||= event.type === 'end'
        yield event
      }
      if (!ended) throw streamBroken(server.url)
    },
    async answer(answer, signal) {
      await server.request('POST', '/api/v1/chat/answer', { signal, body: answer })
    },
  }
}
