import type { CallContext, JsonSchema } from '@svc/core'
import type { ErrorFormat, Route, RouteReply, RouteRequest } from '@svc/core/contracts'
import { prepare } from './call.ts'
import { errorReply, formatError, modelError } from './errors.ts'
import { type ApiServices, respond } from './respond.ts'

/** Bytes. Long conversations have many images. */
const BODY_LIMIT = 32 * 1024 * 1024

const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

const ANY: JsonSchema = {}
const described = (description: string, schema: object = {}): JsonSchema => ({ ...schema, description })

/** The fields for the OpenAPI document. `translate` checks them: it knows which server gets them. */
const COUNTED = {
  model: described('<provider>/<model>, an alias, an id that one provider has, or profile:, team: or workflow: with a name'),
  messages: described('The conversation: messages of the user, the assistant, and the system'),
  system: described('The system prompt: a string, or text blocks'),
  tools: described('Tools of the client'),
  tool_choice: described('auto, any, tool or none, and disable_parallel_tool_use'),
  thinking: described('enabled, adaptive or disabled'),
} as const
const FIELDS = {
  ...COUNTED,
  max_tokens: described('Maximum number of output tokens'),
  stream: described('Whether the answer is a stream of events'),
  stop_sequences: described('Texts before which the answer ends'),
  temperature: described('0 to 1'),
  top_p: described('Above 0, up to 1'),
  top_k: described('An integer'),
  output_config: described('effort, and format: a JSON Schema of the answer'),
  metadata: described('user_id: a key for the prompt cache'),
} as const

const bodyOf = (properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema => ({
  type: 'object',
  properties,
  required,
})

/** The routes of the Messages API. */
export function createRoutes(services: ApiServices): Record<string, Route> {
  return {
    anthropic_messages: {
      method: 'POST',
      path: '/v1/messages',
      summary: 'Call a model or an agent (Messages API)',
      description: 'Compatible with the Messages API of Anthropic. Errors have its form, too.',
      scope: 'chat',
      body: bodyOf(FIELDS, ['model', 'messages']),
      bodyLimit: BODY_LIMIT,
      responses: { '200': { description: 'The message, or with stream its events.', schema: ANY } },
      streams: 'text/event-stream',
      heartbeat: PING,
      stream: (request, ctx) => respond(services, request, ctx),
    },
    anthropic_count_tokens: {
      method: 'POST',
      path: '/v1/messages/count_tokens',
      summary: 'Count the input tokens of a request (Messages API)',
      scope: 'chat',
      body: bodyOf(COUNTED, ['model', 'messages']),
      bodyLimit: BODY_LIMIT,
      responses: { '200': { description: 'The number of tokens.', schema: ANY } },
      handle: (request, ctx) => count(services, request, ctx),
    },
  }
}

async function count({ models }: ApiServices, request: RouteRequest, ctx: CallContext): Promise<RouteReply> {
  const { call } = await prepare(models, request, 'count', ctx)
  try {
    const headers = { 'request-id': ctx.requestId }
    return { headers, body: { input_tokens: await models.countTokens(call, ctx) } }
  } catch (error) {
    const known = modelError(error)
    if (!known) throw error
    return errorReply(known, ctx.requestId)
  }
}

/** The formats of errors: of the routes above, and of all requests below /v1 whose client names the version of this API. */
export const ERROR_FORMATS: Readonly<Record<string, ErrorFormat>> = {
  anthropic: { path: '/v1', header: 'anthropic-version', format: async failed => formatError(failed) },
  anthropic_messages: { path: '/v1/messages', format: async failed => formatError(failed) },
}
