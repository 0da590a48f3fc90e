import type { AuthProvider } from '@modelcontextprotocol/client'
import { svcError } from '@svc/core'
import type { Clock } from '../options.ts'
import type { Fetch } from '../transport/upstream-fetch.ts'
import type { OAuthOptions } from './options.ts'

type Options = OAuthOptions & { readonly tokenUrl: string }

interface Token {
  readonly text: string
  /** Unix milliseconds; nobody uses it later. */
  readonly until: number
}

/** With which header a request was refused that was answered with this. */
export type Refused = (response: Response) => string | undefined

/** A token is not used in its last minute: it must still be good when it arrives. */
const EARLY_MS = 60_000
/** Seconds for which a token is kept that says nothing of it. */
const UNSAID_S = 300

/** Tokens by client credentials: one is kept until it is nearly over, asked for by one flight only, and dropped where the server refuses it. */
export function createClientCredentials(
  options: Options,
  resource: string,
  fetch: Fetch,
  refused: Refused,
  clock: Clock
): AuthProvider {
  let token: Token | undefined
  let flight: Promise<Token> | undefined
  const fresh = () =>
    (flight ??= ask(options, resource, fetch, clock)
      .then(one => (token = one))
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

async function ask(options: Options, resource: string, fetch: Fetch, clock: Clock): Promise<Token> {
  const { clientId = '', clientSecret = '', scope } = options
  const form = { grant_type: 'client_credentials', resource, ...(scope !== undefined && { scope }) }
  const basic = `Basic ${Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString('base64')}`
  const first = await post(options.tokenUrl, fetch, form, { authorization: basic })
  if (first['error'] !== 'invalid_client') return tokenOf(first, clock)
  // servers that want the client in the body say that they do not know it
  return tokenOf(await post(options.tokenUrl, fetch, { ...form, client_id: clientId, client_secret: clientSecret }), clock)
}

/** As forms write it: a colon in an id must not end it. */
const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

type Answer = { readonly [key: string]: unknown }

async function post(
  url: string,
  fetch: Fetch,
  form: Record<string, string>,
  headers: Record<string, string> = {}
): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(form).toString(),
  })
  const body = (await response.json().catch(() => undefined)) as Answer | undefined
  if (typeof body === 'object' && body !== null && (response.ok || typeof body['error'] === 'string')) return body
  throw failed(`the token server answers HTTP ${response.status}`)
}

/** RFC 6749, section 5.2, and what others have added. What else stands there may repeat what it was sent. */
const CODES =
  /^(invalid_(request|client|grant|scope|target)|unauthorized_client|unsupported_grant_type|access_denied|server_error|temporarily_unavailable|slow_down)$/

function tokenOf({ error, access_token: text, token_type: type, expires_in: seconds }: Answer, clock: Clock): Token {
  if (typeof error === 'string')
    throw failed(`the token server refuses: ${CODES.test(error) ? error : 'with a code that is not one of OAuth'}`)
  if (typeof text !== 'string' || text === '') throw failed('the token server answers without a token')
  if (String(type).toLowerCase() !== 'bearer') throw failed('the token server gives a token of another kind than bearer')
  const lasts = typeof seconds === 'number' && seconds > 0 ? seconds : UNSAID_S
  return { text, until: clock.now() + lasts * 1_000 - EARLY_MS }
}

const failed = (message: string) =>
  svcError('OAUTH_FAILED', message, { mend: 'check client_id, client_secret, scope and token_url of the server' })
