import { definePlugin, schema, systemContext } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'

/** The section `server.auth.oidc`; names as in the configuration file. */
interface OidcConfig {
  issuer?: string
  audience?: string
  jwks_uri?: string
  scope_claim: string
}

/** Plain HTTP is for an issuer on this very machine. */
const ADDRESS = {
  type: 'string',
  pattern: '^(https://|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])[:/])[^\\s?#]*$',
  patternHint: 'must be an https:// address without query (http:// for an issuer on this machine)',
}

const oidcSchema = {
  type: 'object',
  additionalProperties: false,
  dependencies: { issuer: ['audience'], audience: ['issuer'], jwks_uri: ['issuer', 'audience'] },
  properties: {
    issuer: { ...ADDRESS, description: 'The `iss` of the tokens that are taken, to the letter.' },
    audience: {
      type: 'string',
      minLength: 1,
      description: 'The `aud` that a token must have: this service, as the issuer calls it.',
    },
    jwks_uri: {
      ...ADDRESS,
      description: 'Where the keys of the issuer are; absent: as `<issuer>/.well-known/openid-configuration` says.',
    },
    scope_claim: {
      type: 'string',
      minLength: 1,
      default: 'scope',
      description: 'The claim that has the scopes, as words between blanks or as a list; `a.b` leads into objects.',
    },
  },
}

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
