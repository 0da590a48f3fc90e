/** A conversation as `GET /api/v1/conversations/{id}` tells it. */
export interface History {
  readonly conversation_id: string
  readonly message_count: number
  readonly messages: readonly HistoryMessage[]
}
interface HistoryMessage {
  readonly role: string
  readonly content: string
  readonly status?: string
}

/** What the users said. */
export const saidIn = ({ messages }: History): string[] =>
  messages.filter(message => message.role === 'user').map(message => message.content)

/** What is wrong with a history in itself: torn or doubled turns, a wrong count, a reply that was made without the turns before it. */
export function historyProblems(history: History): string[] {
  const { conversation_id: id, messages, message_count } = history
  const said = saidIn(history)
  return [
    ...messages.flatMap((message, at) =>
      fits(messages, at) ? [] : [`${id} has a torn turn at ${at}: ${message.role} "${message.content}"`]
    ),
    ...(message_count === messages.length ? [] : [`${id} says ${message_count} messages, has ${messages.length}`]),
    ...(new Set(said).size === said.length ? [] : [`${id} has a turn twice`]),
  ]
}

/** User and assistant take turns; provider-local tells in each reply what was said and how many turns it has seen. */
function fits(messages: readonly HistoryMessage[], at: number): boolean {
  const { role, content } = messages[at]!
  if (at % 2 === 0) return role === 'user' && at + 1 < messages.length
  const number = (at + 1) / 2
  return role === 'assistant' && content === `You said: ${messages[at - 1]!.content}${number > 1 ? ` (turn ${number})` : ''}`
}
