import { type Fields, fieldInvalid, objectAt } from '@svc/api-types'
import type { CallContext } from '@svc/core'
import type { Route, RouteReply, RouteRequest, RouteStreamItem } from '@svc/core/contracts'
import { prepare } from './call.ts'
import { batchEmbed, embedContent } from './embeddings.ts'
import { errorReply, methodUnknown, modelError } from './errors.ts'
import { given } from './fields.ts'
import { modelsPage, modelWire } from './models.ts'
import { type ApiServices, createArray, createEvents, reply, stream } from './respond.ts'
import { CALL_BODY, CALL_RESPONSES, CALL_RESPONSES_V1, LIST_QUERY, LIST_RESPONSES, MODEL_RESPONSES } from './schemas.ts'

/** Bytes. Long conversations have many images. */
const BODY_LIMIT = 32 * 1024 * 1024

/** The routes of the Gemini API. */
export function createRoutes(services: ApiServices): Record<string, Route> {
  const { models } = services
  const call = callRoute(services)
  return {
    gemini_models: {
      method: 'GET',
      path: '/v1beta/models',
      summary: 'List the models and agents that you can use (Gemini API)',
      scope: 'chat',
      query: LIST_QUERY,
      responses: LIST_RESPONSES,
      handle: async ({ query }, ctx) => ({ body: modelsPage(await models.list(ctx), query) }),
    },
    gemini_model: {
      method: 'GET',
      path: '/v1beta/models/*name',
      summary: 'Get a model or agent (Gemini API)',
      description: 'A name can contain slashes and colons, also without percent-encoding.',
      scope: 'chat',
      responses: MODEL_RESPONSES,
      handle: async ({ params }, ctx) => ({ body: modelWire(await models.find(params.name!, ctx)) }),
    },
    gemini_call: call,
    gemini_call_v1: {
      ...call,
      path: '/v1/models/*name',
      summary: 'Call a model or an agent (Gemini API, version 1)',
      responses: CALL_RESPONSES_V1,
    },
  }
}

const callRoute = (services: ApiServices): Route => ({
  method: 'POST',
  path: '/v1beta/models/*name',
  summary: 'Call a model or an agent (Gemini API)',
  description:
    'The path ends with :generateContent, :streamGenerateContent, :countTokens, :embedContent or :batchEmbedContents. Errors have the form of the API of Google, too.',
  scope: 'chat',
  body: CALL_BODY,
  bodyLimit: BODY_LIMIT,
  responses: CALL_RESPONSES,
  streams: 'text/event-stream',
  stream: (request, ctx) => called(services, request, ctx),
})

/** The methods of a model. Each returns a whole reply. */
const METHODS: Readonly<
  Record<string, (services: ApiServices, name: string, request: RouteRequest, ctx: CallContext) => Promise<RouteReply>>
> = {
  generateContent: reply,
  countTokens: count,
  embedContent: ({ models }, name, { body }, ctx) => embedContent(models, name, body as Fields, ctx),
  batchEmbedContents: ({ models }, name, { body }, ctx) => batchEmbed(models, name, body as Fields, ctx),
}

/** Calls the method after the last colon: the name of a model can have colons, too. */
async function* called(services: ApiServices, request: RouteRequest, ctx: CallContext): AsyncGenerator<RouteStreamItem, void> {
  const path = request.params.name!
  const at = path.lastIndexOf(':')
  const [name, method] = [path.slice(0, Math.max(0, at)), path.slice(at + 1)]
  if (method === 'streamGenerateContent')
    return yield* stream(services, name, request, request.query.alt === 'sse' ? createEvents() : createArray(), ctx)
  if (at < 0 || !Object.hasOwn(METHODS, method)) throw methodUnknown(path)
  yield await METHODS[method]!(services, name, request, ctx)
}

/** The number of input tokens. The request is the body, or inside it: then it can have tools and a system instruction, too. */
async function count({ models }: ApiServices, name: string, { body }: RouteRequest, ctx: CallContext): Promise<RouteReply> {
  const inner = given(body as Fields, 'generateContentRequest')
  if (inner !== undefined && given(body as Fields, 'contents') !== undefined)
    throw fieldInvalid('contents', 'must be absent beside generateContentRequest')
  const counted = inner === undefined ? (body as Fields) : objectAt(inner, 'generateContentRequest')
  const { call } = await prepare(models, name, { body: counted, headers: {} }, 'count', ctx)
  try {
    return { body: { totalTokens: await models.countTokens(call, ctx) } }
  } catch (error) {
    const known = modelError(error)
    if (!known) throw error
    return errorReply(known)
  }
}
