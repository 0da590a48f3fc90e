import { BOOLEAN, INTEGER, list, nullable, OBJECT, object, ok, STRING, text, TIME, toolRecord, words } from '@svc/api-types'
import { type JsonSchema, type SlotView, svcError } from '@svc/core'
import type { Chat, Json, McpClients, Mode, Route, Selection, Tool, ToolAnswer, ToolCallEvent } from '@svc/core/contracts'
import { definedOf, modeAllows } from '@svc/plugin-kit'
import { errorFrame, framesOf, type StreamEvent } from '../frames.ts'
import { createToolAppRoute, hasApp } from './tool-app.ts'

const PATH = '/api/v1/tools/:name'
/** Maximum timeout of a call, in seconds. */
const MAX_TIMEOUT_S = 3_600
const BODY_LIMIT = 4 * 1_048_576

export interface ToolServices {
  readonly chat: Chat
  readonly tools: SlotView<Tool>
  readonly modes: SlotView<Mode>
  readonly selection: Selection
  readonly clients?: McpClients | undefined
}

const EFFECT = words('read', 'write', 'execute', 'network')
const TOOL: JsonSchema = {
  ...(object({
    name: STRING,
    title: nullable('string'),
    description: STRING,
    category: STRING,
    parameters: { ...(OBJECT as object), description: 'The parameters as in the list of tools.' },
    input_schema: { ...(OBJECT as object), description: 'The JSON Schema of the arguments.' },
    output_schema: { type: ['object', 'boolean', 'null'], description: 'The JSON Schema of the structured result.' },
    effects: list(EFFECT),
    plugin: { ...(nullable('string') as object), description: 'The plugin that added it.' },
    modes: { type: ['array', 'null'], items: STRING, description: 'The only modes of turns that have it. null: no limit.' },
    asks: { ...(BOOLEAN as object), description: 'A person must approve each call.' },
    app: { ...(BOOLEAN as object), description: 'An MCP App shows its results: GET /api/v1/tools/{name}/app.' },
    timeout_ms: { ...(nullable('integer') as object), description: 'Its own time limit. null: that of chat.' },
    callable: {
      ...(BOOLEAN as object),
      description: 'Whether it can be called now, outside of a turn: the mode of the server allows it.',
    },
  }) as object),
  title: 'ToolDetail',
}

/** The fields of each event's data, besides its `type`. */
const EVENTS: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>> = {
  start: { request_id: STRING, call_id: STRING, tool: STRING, timestamp: TIME },
  progress: { progress: { type: 'number' }, total: nullable('number'), message: nullable('string') },
  ask: {
    call_id: STRING,
    question_id: STRING,
    tool: STRING,
    arguments: OBJECT,
    question: STRING,
    requests: { type: ['object', 'null'], description: 'The input that the tool requests, by key, as in MCP. null: may it run?' },
    expires_at: { type: ['string', 'null'], format: 'date-time', description: 'When the call stops waiting for an answer.' },
  },
  result: { call_id: STRING, success: BOOLEAN, content: list(OBJECT), structured_content: {} },
  error: { error: STRING, error_code: STRING, details: OBJECT },
  end: {
    call_id: STRING,
    tool: STRING,
    status: words('completed', 'failed', 'cancelled'),
    duration_ms: INTEGER,
    timestamp: TIME,
  },
}
const CALL_EVENT: JsonSchema = {
  title: 'ToolCallEvent',
  oneOf: Object.entries(EVENTS).map(([type, fields]) => ({
    ...(object({ type: { const: type }, ...fields }) as object),
    title: `ToolCall${type.slice(0, 1).toUpperCase()}${type.slice(1)}Event`,
  })),
}

const callBody: JsonSchema = {
  ...(object(
    {
      arguments: { type: ['object', 'null'], description: 'The arguments. Default: none.' },
      timeout: {
        type: 'number',
        exclusiveMinimum: 0,
        maximum: MAX_TIMEOUT_S,
        description: 'Time limit in seconds, without waits for answers. Default: that of the tool.',
      },
      interactive: {
        ...(BOOLEAN as object),
        description: 'The client answers ask events (POST /api/v1/tools/{name}/answer). Otherwise, svc denies such calls.',
      },
    },
    []
  ) as object),
  additionalProperties: false,
}
const answerBody: JsonSchema = {
  ...(object(
    {
      request_id: text('The request_id of the start event.'),
      question_id: text('The question_id of the ask event.'),
      allow: BOOLEAN,
      reason: { ...(STRING as object), maxLength: 1_000, description: 'Reason that the model gets if you deny the call.' },
      answers: {
        type: 'object',
        maxProperties: 100,
        description: 'Results of elicitation/create (MCP) by the keys of requests: {"key": {"action": "accept", "content": {}}}.',
      },
    },
    ['request_id', 'question_id', 'allow']
  ) as object),
  additionalProperties: false,
}

/** Routes for one tool: its schema, a call as a stream, and answers to its questions. They need no MCP server. */
export const createToolRoutes = ({ chat, tools, modes, selection, clients }: ToolServices): Record<string, Route> => ({
  tool: {
    method: 'GET',
    path: PATH,
    summary: 'Read a tool with its whole JSON Schema',
    scope: 'read',
    responses: ok('The tool.', TOOL),
    async handle({ params }, ctx) {
      const tool = toolNamed(tools, params.name!)
      const mode = await selection.mode(ctx)
      const callable = tool.modes === undefined && modeAllows(mode, modes.get(mode), tool)
      return { body: { ...detailRecord(params.name!, tool), plugin: tools.owner(params.name!) ?? null, callable } }
    },
  },
  tool_app: createToolAppRoute({ tools, clients }),
  tool_call: {
    method: 'POST',
    path: `${PATH}/call`,
    summary: 'Call a tool and stream its progress and its result',
    description:
      'The arguments are validated, and the mode of the server must allow the tool. Errors before the start are responses.',
    scope: 'tools',
    body: callBody,
    bodyLimit: BODY_LIMIT,
    responses: {
      '200': {
        description:
          'Server-sent events: start first, end last. Between them progress and ask events, and then a result, or an error before an end with the status failed. Comments are heartbeats.',
        schema: CALL_EVENT,
        contentType: 'text/event-stream',
      },
    },
    streams: 'text/event-stream',
    stream({ params, body }, ctx) {
      const { arguments: args, timeout, interactive } = body as unknown as CallBody
      const limit = timeout === undefined ? {} : { timeoutMs: Math.ceil(timeout * 1000) }
      const request = { tool: params.name!, arguments: args ?? {}, interactive: interactive === true, ...limit }
      const events = chat.callTool(request, ctx)
      const options = {
        record: (event: ToolCallEvent) => (event.type === 'error' ? errorFrame(event.error, ctx) : eventRecord(event)),
        failed: () => ({ type: 'end', tool: params.name!, status: 'failed' }),
      }
      return framesOf(events, options, ctx)
    },
  },
  tool_answer: {
    method: 'POST',
    path: `${PATH}/answer`,
    summary: 'Answer a question of a tool call',
    scope: 'tools',
    body: answerBody,
    responses: ok('The call continues with the answer.', object({ success: BOOLEAN })),
    async handle({ body }, ctx) {
      const { request_id: requestId, question_id: callId, allow, ...more } = body as unknown as AnswerBody
      await chat.answer({ requestId, callId, allow, ...definedOf({ reason: more.reason, answers: more.answers }) }, ctx)
      return { body: { success: true } }
    },
  },
})

interface CallBody {
  readonly arguments?: { readonly [name: string]: Json } | null
  readonly timeout?: number
  readonly interactive?: boolean
}
interface AnswerBody {
  readonly request_id: string
  readonly question_id: string
  readonly allow: boolean
  readonly reason?: string
  readonly answers?: NonNullable<ToolAnswer['answers']>
}

function toolNamed(tools: SlotView<Tool>, name: string): Tool {
  const tool = tools.get(name)
  if (tool) return tool
  throw svcError('TOOL_NOT_FOUND', `there is no tool "${name.slice(0, 100)}"`)
}

const detailRecord = (name: string, tool: Tool) => ({
  ...toolRecord(name, tool),
  title: tool.title ?? null,
  input_schema: tool.parameters,
  output_schema: tool.result ?? null,
  effects: [...tool.effects],
  modes: tool.modes ? [...tool.modes] : null,
  asks: tool.asks ?? false,
  app: hasApp(tool),
  timeout_ms: tool.timeoutMs ?? null,
})

function eventRecord(event: Exclude<ToolCallEvent, { type: 'error' }>): StreamEvent {
  switch (event.type) {
    case 'start':
      return {
        type: 'start',
        request_id: event.requestId,
        call_id: event.callId,
        tool: event.tool,
        timestamp: event.timestamp,
      }
    case 'progress':
      return { type: 'progress', progress: event.progress, total: event.total ?? null, message: event.message ?? null }
    case 'ask': {
      const { callId, questionId, tool, question, requests = null, until } = event
      const asked = { call_id: callId, question_id: questionId, tool, arguments: event.arguments, question, requests }
      return { type: 'ask', ...asked, expires_at: until === undefined ? null : new Date(until).toISOString() }
    }
    case 'result': {
      const { callId, success, content, structured = null } = event
      return { type: 'result', call_id: callId, success, content, structured_content: structured }
    }
    case 'end': {
      const { callId, tool, status, durationMs, timestamp } = event
      return { type: 'end', call_id: callId, tool, status, duration_ms: durationMs, timestamp }
    }
  }
}
