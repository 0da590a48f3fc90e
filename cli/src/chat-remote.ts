import { readEvents } from '@svc/sse'
import type { ErrorRecord } from '@svc/core/contracts'
import type { ChatBody, ChatEvent } from '@svc/wire'
import type { Partner } from './chat-partner.ts'
import { credentialHeaders } from './credential.ts'
import { refused, serverUnreachable, streamBroken, urlInvalid } from './errors.ts'

/** Chats with the server at `url` over its HTTP API. `SVC_API_KEY` (an API key or a token) goes along where it is set. */
export function remotePartner(url: string, key: string | undefined = process.env.SVC_API_KEY): Partner {
  if (!URL.canParse(url) || !/^https?:/.test(url)) throw urlInvalid(url)
  const address = new URL('/api/v1/chat/stream', url).href
  const headers = { 'content-type': 'application/json', accept: 'text/event-stream', ...credentialHeaders(key) }
  return {
    name: `the server at ${url}`,
    async *ask(ask: ChatBody, signal: AbortSignal): AsyncGenerator<ChatEvent> {
      const response = await send(address, { method: 'POST', headers, body: JSON.stringify(ask), signal }, url)
      if (!response.ok || response.body === null) throw await refusal(response, url)
      let ended = false
      for await (const { data } of readEvents(response.body)) {
        // What the server of this very project sends; anything else shows as it is.
        const event = JSON.parse(data) as ChatEvent
        ended ||= event.type === 'end'
        yield event
      }
      if (!ended) throw streamBroken(url)
    },
    async [Symbol.asyncDispose]() {},
  }
}

async function send(address: string, init: RequestInit, url: string): Promise<Response> {
  try {
    return await fetch(address, init)
  } catch (error) {
    if (init.signal?.aborted) throw error
    throw serverUnreachable(url, error)
  }
}

/** What answered may be no service at all. */
async function refusal(response: Response, url: string) {
  const { error, error_code, details } = recordOf(await response.text())
  const record = {
    error: error ?? `the server answered ${response.status}`,
    error_code: error_code ?? `HTTP_${response.status}`,
    details: details ?? {},
  }
  return refused(record, { where: url })
}

function recordOf(text: string): Partial<ErrorRecord> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}
