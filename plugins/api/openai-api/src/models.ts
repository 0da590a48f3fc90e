import type { NamedModel, NamedModels, Route, RouteRequest } from '@svc/core/contracts'

/** No model has a date of creation. Clients read the epoch as unknown. */
const CREATED = 0
const CREATED_AT = new Date(CREATED).toISOString().replace('.000', '')

/**
 * A model, with the fields of all APIs: those of OpenAI (`id`, `object`, `created`, `owned_by`), and of Anthropic (`type`,
 * `display_name`, `created_at`, `max_input_tokens`, `max_tokens`).
 */
const modelWire = ({ id, kind, owner, description, context, output }: NamedModel) => ({
  id,
  object: 'model',
  created: CREATED,
  owned_by: kind === 'model' || kind === 'alias' ? owner : `svc:${kind}`,
  type: 'model',
  display_name: id,
  created_at: CREATED_AT,
  ...(description === undefined ? {} : { description }),
  ...(context === undefined ? {} : { context_length: context, max_input_tokens: context }),
  ...(output === undefined ? {} : { max_tokens: output }),
})

/** SDKs of Google use this path too, and read other fields. They send this header. */
const GOOGLE_HEADER = 'x-goog-api-client'

const wireFor = ({ headers }: RouteRequest) => (headers[GOOGLE_HEADER] === undefined ? modelWire : googleWire)

const googleWire = (model: NamedModel) => ({
  ...modelWire(model),
  name: `models/${model.id}`,
  displayName: model.id,
  ...(model.context === undefined ? {} : { inputTokenLimit: model.context }),
  ...(model.output === undefined ? {} : { outputTokenLimit: model.output }),
})

const MODEL = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    object: { const: 'model' },
    created: { type: 'integer', description: 'Always 0: unknown.' },
    owned_by: { type: 'string', description: 'The provider, or svc:profile, svc:team or svc:workflow for an agent.' },
    type: { const: 'model' },
    display_name: { type: 'string' },
    created_at: { type: 'string' },
    description: { type: 'string' },
    context_length: { type: 'integer' },
    max_input_tokens: { type: 'integer' },
    max_tokens: { type: 'integer' },
  },
} as const

/** `GET /v1/models` and `GET /v1/models/{id}`. */
export function createModelRoutes(named: NamedModels): { readonly list: Route; readonly one: Route } {
  return {
    list: {
      method: 'GET',
      path: '/v1/models',
      summary: 'List the models and agents that you can use',
      description: 'The list has the fields of the OpenAI API, of the Anthropic API, and an empty list for Codex.',
      scope: 'chat',
      responses: { '200': { description: 'The models, then the agents.', schema: LIST } },
      handle: async (request, ctx) => ({ body: listWire(await named.list(ctx), request) }),
    },
    one: {
      method: 'GET',
      path: '/v1/models/*id',
      summary: 'Get a model or agent',
      description: 'An id can contain slashes and colons, also without percent-encoding.',
      scope: 'chat',
      responses: { '200': { description: 'The model.', schema: MODEL } },
      handle: async (request, ctx) => ({ body: wireFor(request)(await named.find(request.params.id!, ctx)) }),
    },
  }
}

const LIST = {
  type: 'object',
  properties: {
    object: { const: 'list' },
    data: { type: 'array', items: MODEL },
    has_more: { const: false },
    first_id: { type: ['string', 'null'] },
    last_id: { type: ['string', 'null'] },
    models: { type: 'array' },
  },
} as const

const listWire = (models: readonly NamedModel[], request: RouteRequest) => ({
  object: 'list',
  data: models.map(wireFor(request)),
  has_more: false,
  first_id: models[0]?.id ?? null,
  last_id: models.at(-1)?.id ?? null,
  // Codex needs the list. An entry would replace its own instructions for a model, so the list is empty.
  models: request.headers[GOOGLE_HEADER] === undefined ? [] : models.map(googleWire),
})
