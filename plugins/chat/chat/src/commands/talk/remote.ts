import type { ServerClient } from '@svc/core/contracts'
import type { ChatBody, ChatEvent } from '@svc/api-types'
import { remoteCatalog } from '../catalog/remote.ts'
import { streamBroken } from '../errors.ts'
import type { Partner } from './partner.ts'

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
