import { definePlugin } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'

/** Takes everybody at his word. */
export default definePlugin({
  setup: scope =>
    void scope.add(AuthSchemes, 'word', {
      headers: ['x-scopes'],
      challenge: 'Word',
      authenticate: async ({ headers }) => {
        const scopes = headers['x-scopes']
        return scopes === undefined ? undefined : { id: scopes, scopes: scopes.split(' ') }
      },
    }),
})
