import type { JsonSchema } from '@svc/core'
import type { ChatEvent } from '@svc/api-types'
import { BOOLEAN, INTEGER, nullable, OBJECT, object, STRING, TIME, words } from './schemas.ts'

export const tokensUsed = object({ input: INTEGER, output: INTEGER, total: INTEGER })

const index: JsonSchema = { type: 'integer', minimum: 0, description: 'Counts the tokens of this stream.' }
const result: JsonSchema = { description: 'What the tool answered: JSON where it has structure, else text.' }

type Fields = Parameters<typeof object>[0]

/** The fields of each event's data, besides its `type`. */
const FIELDS: {
  readonly [K in ChatEvent['type']]: { readonly [F in Exclude<keyof Extract<ChatEvent, { type: K }>, 'type'>]: JsonSchema }
} = {
  start: { request_id: STRING, timestamp: TIME, conversation_id: STRING, provider: STRING, model: STRING },
  token: { content: STRING, index },
  tool_call: { tool: STRING, call_id: STRING, arguments: OBJECT },
  ask: { tool: STRING, call_id: STRING, arguments: OBJECT, question: STRING },
  tool_result: { tool: STRING, call_id: STRING, success: BOOLEAN, result, error: nullable('string'), duration_ms: INTEGER },
  error: { error: STRING, error_code: STRING, details: OBJECT },
  end: {
    request_id: STRING,
    timestamp: TIME,
    status: words('completed', 'failed', 'cancelled'),
    provider: STRING,
    model: STRING,
    tokens_used: tokensUsed,
    duration_ms: INTEGER,
  },
}

const MEANINGS: { readonly [K in ChatEvent['type']]: string } = {
  start: 'The turn has begun.',
  token: 'A piece of the reply.',
  tool_call: 'A tool is about to run.',
  ask: 'Only in an interactive turn: whether this call may run. It waits for an answer.',
  tool_result: 'What came of it.',
  error: 'The turn failed after it had begun: an error record.',
  end: 'The turn has ended; provider and model are those that answered.',
}

/** `tool_call` is the schema `ToolCallEvent`. */
const nameOf = (type: string) => `${type.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}Event`

const eventSchema = (type: ChatEvent['type']): JsonSchema => {
  const fields: Fields = { type: { const: type }, ...FIELDS[type] }
  return { title: nameOf(type), description: MEANINGS[type], ...(object(fields) as object) }
}

/** The data of an event of the chat stream. */
export const CHAT_EVENT: JsonSchema = {
  title: 'ChatEvent',
  oneOf: (Object.keys(FIELDS) as ChatEvent['type'][]).map(eventSchema),
}
