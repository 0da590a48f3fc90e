import type { ChatBody, ChatEvent } from '@svc/wire'

/** Whom a chat is with: a server, or a host in this process. Both speak the terms of the HTTP API. */
export interface Partner extends AsyncDisposable {
  readonly name: string
  /** Throws what fails before the turn has begun. */
  ask(ask: ChatBody, signal: AbortSignal): AsyncIterable<ChatEvent>
}
