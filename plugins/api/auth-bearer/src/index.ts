import { type CallContext, definePlugin, Events, type Log, systemContext } from '@svc/core'
import {
  AuthSchemes,
  type Json,
  PeerAnswers,
  Store,
  TokenCreated,
  type TokenInfo,
  TokenRevoked,
  Tokens,
} from '@svc/core/contracts'
import { publishChange } from '@svc/plugin-kit'
import { createBearer } from './bearer.ts'
import { createTokenService, type TokenChanges } from './service.ts'
import { createTokens, type TokenChange, TOPIC } from './tokens.ts'

/** Authentication by `Authorization: Bearer svc_…` with the tokens of `svc tokens create`. */
export default definePlugin({
  requires: { events: Events, store: Store },
  provides: Tokens,
  setup(scope, { events, store }) {
    const lasting = systemContext(scope.signal, 'auth-bearer')
    const tokens = createTokens(store)
    scope.add(AuthSchemes, 'bearer', createBearer({ tokens, log: scope.log, lasting }))
    const changes = createChanges(events, scope.log)
    // commands change the store themselves, and announce it to one worker
    scope.add(PeerAnswers, TOPIC, {
      async *answer(message, ctx) {
        const { type, token } = message as unknown as TokenChange
        if (type === TokenCreated.type) changes.created(token, ctx)
        else if (type === TokenRevoked.type) changes.revoked(token, ctx)
        yield null
      },
    })
    return createTokenService(tokens, changes)
  },
})

/** Publishes the changes. */
function createChanges(events: Events, log: Log): TokenChanges {
  const shown = (token: TokenInfo) => token as unknown as { readonly [member: string]: Json }
  const publish = (type: string, token: TokenInfo, state: object, ctx: CallContext) =>
    publishChange(events, log, { type, subject: `tokens/${token.id}`, ...state }, ctx)
  return {
    created: (token, ctx) => publish(TokenCreated.type, token, { after: shown(token) }, ctx),
    revoked: (token, ctx) => publish(TokenRevoked.type, token, { before: shown(token) }, ctx),
  }
}
