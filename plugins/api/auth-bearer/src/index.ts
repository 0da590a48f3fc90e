import { definePlugin, systemContext } from '@svc/core'
import { AuthSchemes, Store } from '@svc/core/contracts'
import { createBearer } from './bearer.ts'
import { createTokens } from './tokens.ts'

/** Authentication by `Authorization: Bearer svc_…` with the tokens of `svc tokens create`. */
export default definePlugin({
  requires: { store: Store },
  setup(scope, { store }) {
    const lasting = systemContext(scope.signal, 'auth-bearer')
    scope.add(AuthSchemes, 'bearer', createBearer({ tokens: createTokens(store), log: scope.log, lasting }))
  },
})
