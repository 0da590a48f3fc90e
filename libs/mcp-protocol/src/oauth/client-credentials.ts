import { type AuthorizationServerMetadata, ClientCredentialsProvider, fetchToken, OAuthError } from '@modelcontextprotocol/client'
import { createCoalescer, svcError } from '@svc/core'
import { definedOf } from '@svc/plugin-kit'
import type { Fetch, OAuthOptions } from './options.ts'

/** A token is not used in its last minute: it must still be valid when it arrives. */
const EARLY_MS = 60_000
/** Lifetime in seconds of a token without `expires_in`. */
const DEFAULT_LIFETIME_S = 300
/** Codes of RFC 6749, section 5.2, and common additions. Other parts of an error can repeat the request, and so the secret. */
const CODES =
  /^(invalid_(request|client|grant|scope|target)|unauthorized_client|unsupported_grant_type|access_denied|temporarily_unavailable|slow_down)$/
interface Token {
  readonly text: string
  /** Unix milliseconds until which it is used. */
  readonly until: number
}

interface TokenRequest {
  readonly options: OAuthOptions
  readonly tokenUrl: string
  /** The address of the MCP server. */
  readonly resource: string
  readonly fetch: Fetch
}

/**
 * Tokens by client credentials, with the SDK's ClientCredentialsProvider and fetchToken. The transport cannot use that provider directly: it sends the secret to the
 * token endpoint that the MCP server names (here: to the configured `tokenUrl`), keeps a token until it is refused (here: until shortly before it expires), and sends
 * one request for each refused one (here: one for all).
 */
export function createClientCredentials(request: TokenRequest) {
  let known: Token | undefined
  const requests = createCoalescer(async () => (known = await requestToken(request)))
  return {
    /** Returns a valid token. All callers wait for the same request. Throws OAUTH_FAILED. */
    async token(): Promise<string> {
      return (known !== undefined && Date.now() < known.until ? known : await requests.join()).text
    },
    /** The server has refused this token. A refused older one says nothing about the current one. */
    refused(token: string): void {
      if (known?.text === token) known = undefined
    },
  }
}

async function requestToken({ options, tokenUrl, resource, fetch }: TokenRequest): Promise<Token> {
  const { clientId = '', clientSecret = '', scope } = options
  const common = { expectedIssuer: new URL(tokenUrl).origin, ...definedOf({ scope }) }
  // the SDK does not encode both for the header, RFC 6749 (2.3.1) requires it: a colon in an id must not end the id
  const encoded = { clientId: formEncoded(clientId), clientSecret: formEncoded(clientSecret) }
  let status = 0
  const fetchFn: Fetch = async (url, init) => {
    const response = await fetch(url, init)
    status = response.status
    return response
  }
  const send = (provider: ClientCredentialsProvider, method: string) => {
    const metadata = tokenServerMetadata(common.expectedIssuer, tokenUrl, method)
    return fetchToken(provider, common.expectedIssuer, { metadata, resource, fetchFn })
  }
  try {
    const inHeader = new ClientCredentialsProvider({ ...encoded, ...common })
    return tokenOf(
      await send(inHeader, 'client_secret_basic').catch((error: unknown) => {
        if (!(error instanceof OAuthError) || error.code !== 'invalid_client') throw error
        // this server expects the client in the body
        return send(new ClientCredentialsProvider({ clientId, clientSecret, ...common }), 'client_secret_post')
      })
    )
  } catch (error) {
    throw failureOf(error, status)
  }
}

function tokenOf({
  access_token: text,
  token_type: type,
  expires_in: lifetime = 0,
}: Awaited<ReturnType<typeof fetchToken>>): Token {
  if (text === '') throw tokenFailed('the token server answers without a token')
  if (type.toLowerCase() !== 'bearer') throw tokenFailed('the token server returns a token that is not of type bearer')
  return { text, until: Date.now() + (lifetime > 0 ? lifetime : DEFAULT_LIFETIME_S) * 1_000 - EARLY_MS }
}

/** The SDK uses `server_error` also for a response that is not an OAuth error. */
function failureOf(error: unknown, status: number): unknown {
  if (error instanceof OAuthError) {
    if (error.code === 'server_error') return tokenFailed(`the token server answers HTTP ${status}`)
    return tokenFailed(
      `the token server refuses: ${CODES.test(error.code) ? error.code : 'with a code that OAuth does not define'}`
    )
  }
  const isMalformed = error instanceof SyntaxError || (error as Error | undefined)?.name === 'ZodError'
  return isMalformed ? tokenFailed(`the token server answers HTTP ${status} without a token`) : error
}

const tokenServerMetadata = (issuer: string, tokenUrl: string, method: string): AuthorizationServerMetadata => ({
  issuer,
  token_endpoint: tokenUrl,
  token_endpoint_auth_methods_supported: [method],
  // required by the SDK's type; not used by this grant
  authorization_endpoint: tokenUrl,
  response_types_supported: [],
})

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

const tokenFailed = (message: string) =>
  svcError('OAUTH_FAILED', message, { hint: 'Check client_id, client_secret, scope and token_url of the server' })
