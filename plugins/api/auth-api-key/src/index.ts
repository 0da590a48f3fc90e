import { definePlugin, schema } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
import { createApiKey } from './api-key.ts'

/** Authentication by one key in an environment variable. The key has all scopes. */
export default definePlugin({
  section: 'server.auth.api_key_env',
  config: schema<string>({
    type: 'string',
    minLength: 1,
    default: 'SVC_API_KEY',
    description: 'Name of the environment variable that holds the API key.',
  }),
  setup(scope) {
    scope.add(AuthSchemes, 'api_key', createApiKey({ variable: scope.config, env: process.env, log: scope.log }))
  },
})
