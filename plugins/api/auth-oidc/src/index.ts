import { definePlugin, schema, systemContext } from '@svc/core'
import { AuthSchemes } from '@svc/core/contracts'

/** The section `server.auth.oidc`, named as in the configuration file. */
interface OidcConfig {
  issuer?: string
  audience?: string
  jwks_uri?: string
  scope_claim: string
}

/** Plain HTTP is allowed only for an issuer on this machine. */
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
    issuer: { ...ADDRESS, description: 'The exact `iss` of accepted tokens.' },
    audience: {
      type: 'string',
      minLength: 1,
      description: 'The `aud` that a token must have: the name of this service at the issuer.',
    },
    jwks_uri: {
      ...ADDRESS,
      description: 'URL of the keys of the issuer. Default: the `jwks_uri` in `<issuer>/.well-known/openid-configuration`.',
    },
    scope_claim: {
      type: 'string',
      minLength: 1,
      default: 'scope',
      description: 'The claim with the scopes: a list, or words separated by spaces. `a.b` reads a nested claim.',
    },
  },
}

/** Authentication by `Authorization: Bearer <JWT>` of one issuer. Without a configured issuer, it adds no scheme and loads no library. */
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
