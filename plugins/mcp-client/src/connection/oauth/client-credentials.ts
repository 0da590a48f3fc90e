import type { AuthorizationServerMetadata, AuthProvider } from '@modelcontextprotocol/client'
import { svcError } from '@svc/core'
import type { OAuthOptions } from '../options.ts'
import type { Clock } from '../timing.ts'
import type { Fetch } from '../transport/upstream-fetch.ts'

type Options = OAuthOptions & { readonly tokenUrl: string }

interface Token {
  readonly text: string
  /** Unix milliseconds; it is not used later. */
  readonly until: number
}

/** With which header a request was refused that was answered with this. */
export type Refused = (response: Response) => string | undefined

/** A token is not used in its last minute: it must still be good when it arrives. */
const EARLY_MS = 60_000
/** Seconds for which a token is kept that says nothing of it. */
const UNSAID_S = 300

/**
 * Tokens by client credentials: the SDK's ClientCredentialsProvider, asked through the SDK's fetchToken. Given to the transport as it is, that provider would not do:
 * it sends the secret where the tool server says that tokens are given (here: to `tokenUrl`, which the operator names), keeps a token until it is refused (here: until
 * it is nearly over), asks once for each refused request (here: one request for all), and does not ask again with the secret in the body.
 */
export async function createClientCredentials(
  options: Options,
  resource: string,
  fetch: Fetch,
  refused: Refused,
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
      // a request that went with an older one says nothing of the one that has come since
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
  // the SDK writes both into the header as they are, RFC 6749 (2.3.1) wants them encoded: a colon in an id must not end it
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
        // servers that want the client in the body say that they do not know it
        if (error instanceof OAuthError && error.code === 'invalid_client') return send(inBody, 'client_secret_post', noted)
        throw error
      })
      if (tokens.access_token === '') throw failed('the token server answers without a token')
      if (tokens.token_type.toLowerCase() !== 'bearer') throw failed('the token server gives a token of another kind than bearer')
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
  // the SDK's type wants it; this grant has no use for it
  authorization_endpoint: tokenUrl,
  response_types_supported: [],
})

const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** RFC 6749, section 5.2, and what others have added. What else an error holds may repeat what the server was sent. */
const CODES =
  /^(invalid_(request|client|grant|scope|target)|unauthorized_client|unsupported_grant_type|access_denied|temporarily_unavailable|slow_down)$/

/** `server_error` is the SDK's word too, where the server answered with no error of OAuth. */
function refusal(code: string, status: number): string {
  if (code === 'server_error') return `the token server answers HTTP ${status}`
  return `the token server refuses: ${CODES.test(code) ? code : 'with a code that is not one of OAuth'}`
}

/** What the SDK throws where a good answer is not what RFC 6749 says: its parser's errors. */
const isMalformed = (error: unknown) => error instanceof SyntaxError || (error as Error | undefined)?.name === 'ZodError'
const malformed = (status: number) => `the token server answers HTTP ${status} without a token`

const failed = (message: string) =>
  svcError('OAUTH_FAILED', message, { hint: 'check client_id, client_secret, scope and token_url of the server' })
