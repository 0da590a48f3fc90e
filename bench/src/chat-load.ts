import { type Headers, requestFor } from './client.ts'
import type { Load } from './load.ts'

/** The message. */
export const MESSAGE = 'Which of these three proposals would you take, and why?'

/** The load of a chat: the same message in ever new conversations. Every answer must contain the reply. */
export const chatLoad = (port: number, connections: number, ms: number, headers: Headers = {}): Load => ({
  port,
  connections,
  ms,
  request: requestFor('POST', '/api/v1/chat', { message: MESSAGE }, headers),
  problemOf: ({ body }) => (body.includes(`"response":"You said: ${MESSAGE}"`) ? undefined : 'not the reply'),
})
