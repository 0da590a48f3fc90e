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
import { type Catalog, localCatalog, remoteCatalog } from '../catalog/open.ts'
import { streamBroken } from '../errors.ts'

/** Whom a chat is with: a server, or a host in this process. Both speak the terms of the HTTP API. */
export interface Partner {
  readonly catalog: Catalog
  /** Throws what fails before the turn has begun. */
  ask(ask: ChatBody, signal: AbortSignal): AsyncIterable<ChatEvent>
  /** Answers an `ask` event of a turn that is under way. */
  answer(answer: AnswerBody, signal: AbortSignal): Promise<void>
}

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

/** Chats with a server over its HTTP API. */
export function remotePartner(server: ServerClient): Partner {
  return {
    catalog: remoteCatalog(server),
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      let ended = false
      for await (const { data } of server.stream('POST', '/api/v1/chat/stream', { signal, body: ask })) {
        // What the server of this very project sends; anything else shows as it is.
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
