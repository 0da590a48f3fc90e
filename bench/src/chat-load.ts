import { type Headers, requestFor } from './client.ts'
import type { Load } from './load.ts'

/** What is asked. */
export const MESSAGE = 'Which of these three proposals would you take, and why?'

/** The load of a chat: the same message again and again, each a conversation of its own; every answer must hold the reply. */
export const chatLoad = (port: number, connections: number, ms: number, headers: Headers = {}): Load => ({
  port,
  connections,
  ms,
  request: requestFor('POST', '/api/v1/chat', { message: MESSAGE }, headers),
  faultOf: ({ body }) => (body.includes(`"response":"You said: ${MESSAGE}"`) ? undefined : 'not the reply'),
})
