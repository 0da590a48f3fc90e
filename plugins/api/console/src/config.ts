import { schema, svcError, type SvcError } from '@svc/core'

/** The client of the console at the issuer of `server.auth.oidc`. */
export interface OidcClientConfig {
  client_id: string
  client_secret_env?: string
  redirect_uri: string
  post_logout_redirect_uri?: string
  scope: string
  parameters: Record<string, string>
  label?: string
}

/** The section `console`, named as in the configuration file. */
export interface ConsoleConfig {
  oidc?: OidcClientConfig
}

/** The place of the page that an issuer sends browsers back to. */
const CALLBACK = '/console/oidc'
/** Plain HTTP is allowed only on this machine. */
const ORIGIN = '(https://[^\\s/?#@]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])(:\\d{1,5})?)'
/** Parameters that the console itself sends. */
const OWN_PARAMETERS =
  'client_id|client_secret|redirect_uri|response_type|response_mode|state|nonce|code_challenge|code_challenge_method|scope|request|request_uri'

export const CONSOLE_CONFIG = schema<ConsoleConfig>({
  type: 'object',
  additionalProperties: false,
  properties: {
    oidc: {
      type: 'object',
      additionalProperties: false,
      required: ['client_id', 'redirect_uri'],
      description: 'Sign in at the issuer of `server.auth.oidc`, as this client.',
      properties: {
        client_id: { type: 'string', pattern: '^[\\x21-\\x7e]{1,255}$', description: 'The client of the console at the issuer.' },
        client_secret_env: {
          type: 'string',
          pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
          description: 'Environment variable with the secret of the client. Default: a public client, without a secret.',
        },
        redirect_uri: {
          type: 'string',
          pattern: `^${ORIGIN}${CALLBACK}$`,
          patternHint: `must be the address of the console with the path ${CALLBACK}: https://svc.example.com${CALLBACK}`,
          description: `The address that the issuer sends browsers back to, exactly as registered there: \`https://svc.example.com${CALLBACK}\`.`,
        },
        post_logout_redirect_uri: {
          type: 'string',
          pattern: `^${ORIGIN}/console$`,
          patternHint: 'must be the address of the console: https://svc.example.com/console',
          description:
            'The address that the issuer sends browsers to after a logout, exactly as registered there. Default: none.',
        },
        scope: {
          type: 'string',
          pattern: '^openid( [\\x21\\x23-\\x5b\\x5d-\\x7e]+)*$',
          patternHint: 'must begin with openid: openid offline_access',
          default: 'openid',
          description: 'Scopes to ask the issuer for. Many issuers give a refresh token for `offline_access` only.',
        },
        parameters: {
          type: 'object',
          default: {},
          maxProperties: 16,
          propertyNames: { pattern: `^(?!(${OWN_PARAMETERS})$)[A-Za-z0-9._-]{1,64}$` },
          additionalProperties: { type: 'string', maxLength: 1_000 },
          description:
            'Further parameters of the request to the issuer, such as `resource` or `audience`, so that its access token is for this server.',
        },
        label: {
          type: 'string',
          minLength: 1,
          maxLength: 60,
          description: 'The name of the issuer on the button. Default: its host.',
        },
      },
    },
  },
})

/** The secret of the client. `undefined`: a public client. Throws CLIENT_SECRET_MISSING. */
export function secretOf({ client_secret_env: variable }: OidcClientConfig, env: NodeJS.ProcessEnv): string | undefined {
  if (variable === undefined) return undefined
  const secret = env[variable]?.trim()
  if (!secret) throw secretMissing(variable)
  return secret
}

const secretMissing = (variable: string): SvcError =>
  svcError('CLIENT_SECRET_MISSING', `the environment variable ${variable} is unset or empty`, {
    where: 'console.oidc.client_secret_env',
    details: { variable },
    hint: `Set ${variable} to the secret of the client, or remove client_secret_env for a public client`,
  })
