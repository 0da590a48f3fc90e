import { definePlugin, Events, systemContext } from '@svc/core'
import { AuthSchemes, type Json, PeerAnswers, Store, TokenCreated, TokenRevoked } from '@svc/core/contracts'
import { publishChange } from '@svc/plugin-kit'
import { createBearer } from './bearer.ts'
import { createTokens, type TokenChange, TOPIC } from './tokens.ts'

/** Authentication by `Authorization: Bearer svc_…` with the tokens of `svc tokens create`. */
export default definePlugin({
  requires: { events: Events, store: Store },
  setup(scope, { events, store }) {
    const lasting = systemContext(scope.signal, 'auth-bearer')
    scope.add(AuthSchemes, 'bearer', createBearer({ tokens: createTokens(store), log: scope.log, lasting }))
    // commands change the store themselves, and announce it to one worker
    scope.add(PeerAnswers, TOPIC, {
      async *answer(message, ctx) {
        const { type, token } = message as unknown as TokenChange
        const { type: created } = TokenCreated
        const shown = token as unknown as { readonly [member: string]: Json }
        const subject = `tokens/${token.id}`
        if (type === created) publishChange(events, scope.log, { type, subject, after: shown }, ctx)
        else if (type === TokenRevoked.type) publishChange(events, scope.log, { type, subject, before: shown }, ctx)
        yield null
      },
    })
  },
})
