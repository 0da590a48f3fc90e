import { readEvents } from '@svc/sse'
import type { ChatBody, ChatEvent } from '@svc/wire'
import { remoteCatalog } from './catalog-remote.ts'
import type { Partner } from './chat-partner.ts'
import { streamBroken } from './errors.ts'
import { createServerApi } from './server-api.ts'

/** Chats with the server at `url` over its HTTP API. Throws URL_INVALID. */
export function remotePartner(url: string): Partner {
  const api = createServerApi(url)
  return {
    catalog: remoteCatalog(api),
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      let ended = false
      for await (const { data } of readEvents(await api.stream('/api/v1/chat/stream', signal, ask))) {
        // What the server of this very project sends; anything else shows as it is.
        const event = JSON.parse(data) as ChatEvent
        ended ||= event.type === 'end'
        yield event
      }
      if (!ended) throw streamBroken(url)
    },
    async answer(answer, signal) {
      await api.ask('POST', '/api/v1/chat/answer', signal, answer)
    },
    async [Symbol.asyncDispose]() {},
  }
}
