import type { AuthorizationServerMetadata, AuthProvider } from '@modelcontextprotocol/client'
import { svcError } from '@svc/core'
import type { OAuthOptions } from '../options.ts'
import type { Clock } from '../timing.ts'
import type { Fetch } from '../transport/upstream-fetch.ts'

type Options = OAuthOptions & { readonly tokenUrl: string }

interface Token {
  readonly text: string
  /** Unix milliseconds until which it is used. */
  readonly until: number
}

/** The `Authorization` header of the request that got this 401 response. */
export type RefusedToken = (response: Response) => string | undefined

/** A token is not used in its last minute: it must still be valid when it arrives. */
const EARLY_MS = 60_000
/** Lifetime in seconds of a token without `expires_in`. */
const UNSAID_S = 300

/**
 * Tokens by client credentials, with the SDK's ClientCredentialsProvider and fetchToken. The transport cannot use that provider directly: it sends the secret to the
 * token endpoint that the MCP server names (here: to the configured `tokenUrl`), keeps a token until it is refused (here: until shortly before it expires), sends one
 * request for each refused one (here: one for all), and does not retry with the secret in the body.
 */
export async function createClientCredentials(
  options: Options,
  resource: string,
  fetch: Fetch,
  refused: RefusedToken,
  clock: Clock
): Promise<AuthProvider> {
  const ask = await tokenRequest(options, resource, fetch)
  let token: Token | undefined
  let flight: Promise<Token> | undefined
  const fresh = () =>
    (flight ??= ask()
      .then(({ text, seconds }) => (token = { text, until: clock.now() + seconds * 1_000 - EARLY_MS }))
      .finally(() => {
        flight = undefined
      }))
  return {
    async token() {
      return token !== undefined && clock.now() < token.until ? token.text : (await fresh()).text
    },
    async onUnauthorized({ response }) {
      // a request with an older token says nothing about the current one
      if (token === undefined || refused(response) === `Bearer ${token.text}`) await fresh()
    },
  }
}

type Ask = () => Promise<{ readonly text: string; readonly seconds: number }>

async function tokenRequest(
  { clientId = '', clientSecret = '', scope, tokenUrl }: Options,
  resource: string,
  fetch: Fetch
): Promise<Ask> {
  const { ClientCredentialsProvider, fetchToken, OAuthError } = await import('@modelcontextprotocol/client')
  const expectedIssuer = new URL(tokenUrl).origin
  const rest = { expectedIssuer, ...(scope !== undefined && { scope }) }
  // the SDK does not encode both for the header, RFC 6749 (2.3.1) requires it: a colon in an id must not end the id
  const inHeader = new ClientCredentialsProvider({ clientId: encoded(clientId), clientSecret: encoded(clientSecret), ...rest })
  const inBody = new ClientCredentialsProvider({ clientId, clientSecret, ...rest })
  const send = (provider: typeof inBody, method: 'client_secret_basic' | 'client_secret_post', fetchFn: Fetch) =>
    fetchToken(provider, expectedIssuer, { metadata: metadataOf(expectedIssuer, tokenUrl, method), resource, fetchFn })
  return async () => {
    let status = 0
    const noted: Fetch = async (url, init) => {
      const response = await fetch(url, init)
      status = response.status
      return response
    }
    try {
      const tokens = await send(inHeader, 'client_secret_basic', noted).catch((error: unknown) => {
        // a server that expects the client in the body reports an unknown client
        if (error instanceof OAuthError && error.code === 'invalid_client') return send(inBody, 'client_secret_post', noted)
        throw error
      })
      if (tokens.access_token === '') throw failed('the token server answers without a token')
      if (tokens.token_type.toLowerCase() !== 'bearer')
        throw failed('the token server returns a token that is not of type bearer')
      const { access_token: text, expires_in: seconds = 0 } = tokens
      return { text, seconds: seconds > 0 ? seconds : UNSAID_S }
    } catch (error) {
      throw error instanceof OAuthError
        ? failed(refusal(error.code, status))
        : isMalformed(error)
          ? failed(malformed(status))
          : error
    }
  }
}

const metadataOf = (issuer: string, tokenUrl: string, method: string): AuthorizationServerMetadata => ({
  issuer,
  token_endpoint: tokenUrl,
  token_endpoint_auth_methods_supported: [method],
  // required by the SDK's type; not used by this grant
  authorization_endpoint: tokenUrl,
  response_types_supported: [],
})

const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** Codes of RFC 6749, section 5.2, and common additions. Other parts of an error may repeat the request, and so the secret. */
const CODES =
  /^(invalid_(request|client|grant|scope|target)|unauthorized_client|unsupported_grant_type|access_denied|temporarily_unavailable|slow_down)$/

/** The SDK also uses `server_error` where the response is not an OAuth error. */
function refusal(code: string, status: number): string {
  if (code === 'server_error') return `the token server answers HTTP ${status}`
  return `the token server refuses: ${CODES.test(code) ? code : 'with a code that OAuth does not define'}`
}

/** The errors of the SDK's parser for a successful response that does not follow RFC 6749. */
const isMalformed = (error: unknown) => error instanceof SyntaxError || (error as Error | undefined)?.name === 'ZodError'
const malformed = (status: number) => `the token server answers HTTP ${status} without a token`

const failed = (message: string) =>
  svcError('OAUTH_FAILED', message, { hint: 'Check client_id, client_secret, scope and token_url of the server' })
