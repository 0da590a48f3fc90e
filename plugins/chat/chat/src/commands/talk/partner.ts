import type { AnswerBody, ChatBody, ChatEvent } from '@svc/api-types'
import type { Catalog } from '../catalog/catalog.ts'

/** Whom a chat is with: a server, or a host in this process. Both speak the terms of the HTTP API. */
export interface Partner {
  readonly catalog: Catalog
  /** Throws what fails before the turn has begun. */
  ask(ask: ChatBody, signal: AbortSignal): AsyncIterable<ChatEvent>
  /** Answers an `ask` event of a turn that is under way. */
  answer(answer: AnswerBody, signal: AbortSignal): Promise<void>
}
