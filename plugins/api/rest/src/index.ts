import { definePlugin, Host, schema } from '@svc/core'
import {
  AuthSchemes,
  Chat,
  Checks,
  Conversations,
  HealthFacts,
  Http,
  Modes,
  NodeBus,
  Providers,
  Recommend,
  Routes,
  Selection,
  Store,
  Tools,
  TurnStreams,
  Workflows,
} from '@svc/core/contracts'
import { createRoutes, LEAVING } from './routes.ts'

/** The section `rest`. */
export interface RestConfig {
  chat_body_limit: number
}

const REST_CONFIG = schema<RestConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    chat_body_limit: {
      type: 'integer',
      minimum: 1,
      default: 33_554_432,
      description: 'Maximum bytes of the body of a chat request, which can have images and files',
    },
  },
})

export default definePlugin({
  section: 'rest',
  config: REST_CONFIG,
  requires: {
    host: Host,
    http: Http,
    chat: Chat,
    turnStreams: TurnStreams,
    conversations: Conversations,
    selection: Selection,
    modes: Modes,
    providers: Providers,
    tools: Tools,
    checks: Checks,
    facts: HealthFacts,
    routes: Routes,
    schemes: AuthSchemes,
  },
  optional: { store: Store, bus: NodeBus, workflows: Workflows, recommend: Recommend },
  setup(scope, given) {
    const { routes, leave } = createRoutes({ ...given, chatBodyLimit: scope.config.chat_body_limit, log: scope.log })
    for (const [name, route] of Object.entries(routes)) scope.add(Routes, name, route)
    scope.tap(Host.hooks.closing, leave, { stage: LEAVING })
  },
})
