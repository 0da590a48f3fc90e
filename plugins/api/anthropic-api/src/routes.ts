import type { CallContext } from '@svc/core'
import type { ErrorFormat, Route, RouteReply, RouteRequest } from '@svc/core/contracts'
import { prepare } from './call.ts'
import { errorReply, formatError, modelError } from './errors.ts'
import { type ApiServices, respond } from './respond.ts'
import { COUNT_BODY, COUNT_RESPONSES, MESSAGE_BODY, MESSAGE_RESPONSES } from './schemas.ts'

/** Bytes. Long conversations have many images. */
const BODY_LIMIT = 32 * 1024 * 1024

const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

/** The routes of the Messages API. */
export function createRoutes(services: ApiServices): Record<string, Route> {
  return {
    anthropic_messages: {
      method: 'POST',
      path: '/v1/messages',
      summary: 'Call a model or an agent (Messages API)',
      description: 'Compatible with the Messages API of Anthropic. Errors also have the format of this API.',
      scope: 'chat',
      body: MESSAGE_BODY,
      bodyLimit: BODY_LIMIT,
      responses: MESSAGE_RESPONSES,
      streams: 'text/event-stream',
      heartbeat: PING,
      stream: (request, ctx) => respond(services, request, ctx),
    },
    anthropic_count_tokens: {
      method: 'POST',
      path: '/v1/messages/count_tokens',
      summary: 'Count the input tokens of a request (Messages API)',
      scope: 'chat',
      body: COUNT_BODY,
      bodyLimit: BODY_LIMIT,
      responses: COUNT_RESPONSES,
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
