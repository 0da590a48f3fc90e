import { definePlugin, schema, systemContext } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'
import { type OidcConfig, oidcSchema } from './config.ts'

/** `Authorization: Bearer <JWT>` of one issuer. Without an issuer in the configuration nothing is added, and no library loaded. */
export default definePlugin({
  section: 'server.auth.oidc',
  config: schema<OidcConfig>(oidcSchema),
  async setup(scope) {
    const { issuer, audience, jwks_uri: jwksUri, scope_claim: scopeClaim } = scope.config
    if (issuer === undefined || audience === undefined) return
    const { createOidc } = await import('./oidc.ts')
    const { log, signal } = scope
    const lasting = systemContext(signal, 'auth-oidc')
    scope.add(AuthSchemes, 'oidc', createOidc({ issuer, audience, jwksUri, scopeClaim, log, lasting }))
  },
})
