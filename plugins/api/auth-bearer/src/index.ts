import { definePlugin, systemContext } from '@svc/core'
import { AuthSchemes, Store } from '@svc/core/contracts'
import { createBearer } from './bearer.ts'
import { createTokens } from './tokens.ts'

/** `Authorization: Bearer svc_…`: the tokens that `svc tokens create` gives out. */
export default definePlugin({
  requires: { store: Store },
  setup(scope, { store }) {
    const lasting = systemContext(scope.signal, 'auth-bearer')
    scope.add(AuthSchemes, 'bearer', createBearer({ tokens: createTokens(store), log: scope.log, lasting }))
  },
})
