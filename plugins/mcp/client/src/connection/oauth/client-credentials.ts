import { svcError } from '@svc/core'
import type { OAuthOptions } from '../options.ts'

/** A token is not used in its last minute: it must still be valid when it arrives. */
const EARLY_MS = 60_000
/** Lifetime in seconds of a token without `expires_in`. */
const UNSAID_S = 300
/** Codes of RFC 6749, section 5.2, and common additions. Other parts of an error can repeat the request, and so the secret. */
const CODES =
  /^(invalid_(request|client|grant|scope|target)|unauthorized_client|unsupported_grant_type|access_denied|temporarily_unavailable|slow_down)$/
/** What a header can hold. */
const TOKEN = /^[\x21-\x7e]+$/
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

type ClientCredentialsOptions = OAuthOptions & { readonly tokenUrl: string }
/** Sends a form to the token server. */
type Post = (url: URL, form: URLSearchParams, headers: Readonly<Record<string, string>>) => Promise<Response>

interface Token {
  readonly text: string
  /** Unix milliseconds until which it is used. */
  readonly until: number
}

/**
 * Tokens by client credentials (RFC 6749, section 4.4). The SDK's provider would send the secret to the token endpoint that the MCP server names, and request a token
 * for each refused request.
 */
export class ClientCredentials {
  readonly #options: ClientCredentialsOptions
  readonly #resource: string
  readonly #post: Post
  #token: Token | undefined
  #flight: Promise<Token> | undefined

  constructor(options: ClientCredentialsOptions, resource: string, post: Post) {
    this.#options = options
    this.#resource = resource
    this.#post = post
  }

  /** Returns a valid token. All callers wait for the same request. Throws OAUTH_FAILED. */
  async token(): Promise<string> {
    if (this.#token !== undefined && Date.now() < this.#token.until) return this.#token.text
    this.#flight ??= this.#request()
      .then(token => (this.#token = token))
      .finally(() => {
        this.#flight = undefined
      })
    return (await this.#flight).text
  }

  /** The server has refused this token. A refused older one says nothing about the current one. */
  refused(token: string): void {
    if (this.#token?.text === token) this.#token = undefined
  }

  async #request(): Promise<Token> {
    const { clientId = '', clientSecret = '', scope, tokenUrl } = this.#options
    const url = new URL(tokenUrl)
    if (url.protocol !== 'https:' && !LOOPBACK.test(url.hostname))
      throw tokenFailed(`the token server ${url.origin}${url.pathname} does not use https`)
    const form = new URLSearchParams({ grant_type: 'client_credentials', resource: this.#resource, ...(scope && { scope }) })
    // RFC 6749 (2.3.1) requires the form encoding: a colon in an id must not end the id
    const basic = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')
    let response = await this.#post(url, form, { authorization: `Basic ${basic}` })
    let answer = await read(response)
    if (answer.error === 'invalid_client') {
      // this server expects the client in the body
      form.set('client_id', clientId)
      form.set('client_secret', clientSecret)
      response = await this.#post(url, form, {})
      answer = await read(response)
    }
    return tokenOf(answer, response.status)
  }
}

type TokenAnswer = { readonly [key in 'error' | 'access_token' | 'token_type' | 'expires_in']?: unknown }

const read = async (response: Response): Promise<TokenAnswer> =>
  ((await response.json().catch(() => undefined)) as TokenAnswer | null | undefined) ?? {}

function tokenOf({ error, access_token: text, token_type: type, expires_in: lifetime }: TokenAnswer, status: number): Token {
  if (typeof error === 'string')
    throw tokenFailed(`the token server refuses: ${CODES.test(error) ? error : 'with a code that OAuth does not define'}`)
  if (status >= 300) throw tokenFailed(`the token server answers HTTP ${status}`)
  if (typeof text !== 'string' || !TOKEN.test(text)) throw tokenFailed(`the token server answers HTTP ${status} without a token`)
  if (String(type).toLowerCase() !== 'bearer') throw tokenFailed('the token server returns a token that is not of type bearer')
  const seconds = Number(lifetime) > 0 ? Number(lifetime) : UNSAID_S
  return { text, until: Date.now() + seconds * 1_000 - EARLY_MS }
}

const formEncoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

const tokenFailed = (message: string) =>
  svcError('OAUTH_FAILED', message, { hint: 'Check client_id, client_secret, scope and token_url of the server' })
