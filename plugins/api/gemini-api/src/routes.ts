import { type Fields, fieldInvalid, objectAt } from '@svc/api-types'
import type { CallContext } from '@svc/core'
import type { Json, NamedModel, Route, RouteReply, RouteRequest, RouteStreamItem } from '@svc/core/contracts'
import { prepare } from './call.ts'
import { batchEmbed, embedContent } from './embeddings.ts'
import { errorReply, methodUnknown, modelError } from './errors.ts'
import { given } from './fields.ts'
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

// --- the list of models ---

/** A model as the API lists it. Limits that svc does not know are absent. */
const modelWire = ({ id, description, context, output, features, kind }: NamedModel) => ({
  name: `models/${id}`,
  version: '',
  displayName: id,
  ...(description === undefined ? {} : { description }),
  ...(context === undefined ? {} : { inputTokenLimit: context }),
  ...(output === undefined ? {} : { outputTokenLimit: output }),
  supportedGenerationMethods: methodsOf({ kind, features }),
  thinking: features?.supports?.includes('reasoning_effort') ?? false,
})

const GENERATING = ['generateContent', 'streamGenerateContent', 'countTokens']
const EMBEDDING = ['embedContent', 'batchEmbedContents']

/** A model that makes embeddings and streams no answers does nothing else. */
function methodsOf({ kind, features }: Pick<NamedModel, 'kind' | 'features'>): readonly string[] {
  const isEmbedding = (kind === 'model' || kind === 'alias') && features?.supports?.includes('embeddings') === true
  if (!isEmbedding) return GENERATING
  return features?.streaming === false ? EMBEDDING : [...GENERATING, ...EMBEDDING]
}

/** Models of a page, as the API counts. */
const PAGE = 50
const LARGEST_PAGE = 1_000

/** A page of the list. The token of a page is the number of models before it. Throws INVALID_VALUE. */
function modelsPage(models: readonly NamedModel[], query: Readonly<Record<string, string>>): Json {
  const size = Math.min(LARGEST_PAGE, countOf(query.pageSize ?? query.page_size, 'pageSize') || PAGE)
  const from = countOf(query.pageToken ?? query.page_token, 'pageToken')
  const next = from + size
  return {
    models: models.slice(from, next).map(modelWire) as unknown as Json[],
    ...(next < models.length ? { nextPageToken: String(next) } : {}),
  }
}

function countOf(text: string | undefined, field: string): number {
  if (text === undefined || text === '') return 0
  if (!/^\d{1,9}$/.test(text)) throw fieldInvalid(field, field === 'pageSize' ? 'must be an integer' : 'is not of this list')
  return Number(text)
}
