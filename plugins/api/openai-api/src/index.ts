import { definePlugin, schema, systemContext } from '@svc/core'
import { Conversations, ErrorFormats, Http, JobKinds, Jobs, NamedModels, Routes, Store } from '@svc/core/contracts'
import { createChatRoute } from './chat/route.ts'
import { createEmbeddingsRoute } from './embeddings.ts'
import { ERROR_FORMAT, withErrors } from './errors.ts'
import { createModelRoutes } from './models.ts'
import { createResponses, RESPONSES_SCHEMA, type ResponsesConfig } from './responses/responses.ts'

/** The endpoints of the OpenAI API: models, chat completions, responses and embeddings. */
export default definePlugin({
  section: 'api.openai',
  config: schema<{ readonly enabled: boolean; readonly hold_ms: number; readonly responses: ResponsesConfig }>({
    type: 'object',
    additionalProperties: false,
    properties: {
      enabled: {
        type: 'boolean',
        default: true,
        description: 'Serve the OpenAI API at /v1: models, chat completions, responses and embeddings.',
      },
      hold_ms: {
        type: 'integer',
        minimum: 0,
        maximum: 60_000,
        default: 15_000,
        description:
          'Milliseconds that a stream waits for its first part, so that an early failure has a status. Then heartbeats begin.',
      },
      responses: RESPONSES_SCHEMA,
    },
  }),
  requires: { http: Http, named: NamedModels, store: Store },
  optional: { conversations: Conversations, jobs: Jobs },
  async setup(scope, { http, named, ...stores }) {
    const { enabled, hold_ms: holdMs, responses } = scope.config
    if (!enabled) return
    const { list, one } = createModelRoutes(named)
    scope.add(Routes, 'openai_models', withErrors(list))
    scope.add(Routes, 'openai_model', withErrors(one))
    scope.add(Routes, 'openai_chat', withErrors(createChatRoute({ named, http, holdMs })))
    scope.add(Routes, 'openai_embeddings', withErrors(createEmbeddingsRoute(named, http)))
    scope.add(ErrorFormats, 'openai', ERROR_FORMAT)
    const lasting = systemContext(scope.signal, 'openai api')
    const made = await createResponses({ http, named, holdMs, ...stores, lasting, log: scope.log }, responses)
    for (const [name, route] of Object.entries(made.routes)) scope.add(Routes, name, withErrors(route))
    scope.add(ErrorFormats, 'openai_responses', made.format)
    if (stores.jobs) scope.add(JobKinds, made.kind.name, made.kind.job)
  },
})
