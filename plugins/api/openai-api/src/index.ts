import { definePlugin, schema, systemContext } from '@svc/core'
import { Conversations, ErrorFormats, Http, JobKinds, Jobs, Mounts, NamedModels, Routes, Store } from '@svc/core/contracts'
import { createChatRoute } from './chat/route.ts'
import { createEmbeddingsRoute } from './embeddings.ts'
import { ERROR_FORMAT } from './errors.ts'
import { createModelRoutes } from './models.ts'
import { createResponses, type ResponsesConfig, RESPONSES_SCHEMA } from './responses/responses.ts'

/** The endpoints of the OpenAI API: models, chat completions, responses and embeddings. */
export default definePlugin({
  section: 'api.openai',
  config: schema<{ readonly enabled: boolean; readonly responses: ResponsesConfig }>({
    type: 'object',
    additionalProperties: false,
    properties: {
      enabled: {
        type: 'boolean',
        default: true,
        description: 'Serve the OpenAI API at /v1: models, chat completions, responses and embeddings.',
      },
      responses: RESPONSES_SCHEMA,
    },
  }),
  requires: { http: Http, named: NamedModels, store: Store },
  optional: { conversations: Conversations, jobs: Jobs },
  async setup(scope, { http, named, ...stores }) {
    if (!scope.config.enabled) return
    const { list, one, nested } = createModelRoutes(named)
    scope.add(Routes, 'openai_models', list)
    scope.add(Routes, 'openai_model', one)
    scope.add(Mounts, 'openai_models', nested)
    scope.add(Routes, 'openai_chat', createChatRoute(named, http))
    scope.add(Routes, 'openai_embeddings', createEmbeddingsRoute(named, http))
    scope.add(ErrorFormats, 'openai', ERROR_FORMAT)
    const lasting = systemContext(scope.signal, 'openai api')
    const { routes, kind, format } = await createResponses(
      { http, named, ...stores, lasting, log: scope.log },
      scope.config.responses
    )
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
    scope.add(ErrorFormats, 'openai_responses', format)
    if (stores.jobs) scope.add(JobKinds, kind.name, kind.job)
  },
})
