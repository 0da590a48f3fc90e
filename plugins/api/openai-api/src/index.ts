import { definePlugin, schema } from '@svc/core'
import { ErrorFormats, Http, Mounts, NamedModels, Routes } from '@svc/core/contracts'
import { createChatRoute } from './chat/route.ts'
import { createEmbeddingsRoute } from './embeddings.ts'
import { ERROR_FORMAT } from './errors.ts'
import { createModelRoutes } from './models.ts'

/** The endpoints of the OpenAI API: models, chat completions and embeddings. */
export default definePlugin({
  section: 'api.openai',
  config: schema<{ readonly enabled: boolean; readonly hold_ms: number }>({
    type: 'object',
    additionalProperties: false,
    properties: {
      enabled: {
        type: 'boolean',
        default: true,
        description: 'Serve the OpenAI API at /v1: models, chat completions and embeddings.',
      },
      hold_ms: {
        type: 'integer',
        minimum: 0,
        maximum: 60_000,
        default: 15_000,
        description:
          'Milliseconds that a stream waits for its first part, so that an early failure has a status. Then heartbeats begin.',
      },
    },
  }),
  requires: { http: Http, named: NamedModels },
  setup(scope, { http, named }) {
    if (!scope.config.enabled) return
    const { list, one, nested } = createModelRoutes(named)
    scope.add(Routes, 'openai_models', list)
    scope.add(Routes, 'openai_model', one)
    scope.add(Mounts, 'openai_models', nested)
    scope.add(Routes, 'openai_chat', createChatRoute({ named, http, holdMs: scope.config.hold_ms }))
    scope.add(Routes, 'openai_embeddings', createEmbeddingsRoute(named, http))
    scope.add(ErrorFormats, 'openai', ERROR_FORMAT)
  },
})
