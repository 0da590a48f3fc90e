import { createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen, type Listening, openRemote, type Remote } from './remote.ts'

/** An authorization server and the server of the tool protocol that trusts it, both on the loopback. */
export interface Authority extends AsyncDisposable {
  readonly remote: Remote
  readonly issuer: string
  readonly tokenUrl: string
  /** The grants that tokens were given for, in order. */
  readonly grants: readonly string[]
  /** No token that was given is good any more. */
  revoke(): void
}

const CLIENT = { id: 'the-client', secret: 'the-secret' }

const send = (response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

/** Opens both. Whoever is sent to log in is let in at once. */
export async function openAuthority(): Promise<Authority> {
  const good = new Set<string>()
  const grants: string[] = []
  const challenges = new Map<string, string>()
  const issue = (response: ServerResponse, grant: string) => {
    const token = randomUUID()
    good.add(token)
    grants.push(grant)
    send(response, 200, { access_token: token, token_type: 'Bearer', expires_in: 3600, refresh_token: `refresh-${token}` })
  }
  const token = async (request: IncomingMessage, response: ServerResponse) => {
    const form = new URLSearchParams(await text(request))
    const grant = form.get('grant_type') ?? ''
    if (grant === 'client_credentials' && !isClient(request)) return send(response, 401, { error: 'invalid_client' })
    if (grant === 'authorization_code' && !isProven(form, challenges)) return send(response, 400, { error: 'invalid_grant' })
    issue(response, grant)
  }
  const auth: Listening = await listen(async (request, response) => {
    const at = new URL(request.url ?? '/', auth.url)
    if (at.pathname === '/token') return token(request, response)
    if (at.pathname.startsWith('/.well-known/oauth-authorization-server')) return send(response, 200, metadata(auth.url))
    if (at.pathname === '/register')
      return send(response, 201, { ...(JSON.parse(await text(request)) as object), client_id: 'registered' })
    if (at.pathname !== '/authorize') return send(response, 404, {})
    const code = randomUUID()
    challenges.set(code, at.searchParams.get('code_challenge') ?? '')
    const back = new URL(at.searchParams.get('redirect_uri') ?? '')
    for (const [name, value] of Object.entries({ code, state: at.searchParams.get('state') ?? '' }))
      back.searchParams.set(name, value)
    return response.writeHead(302, { location: back.href }).end()
  })
  const remote: Remote = await openRemote(2, (request, response) => {
    const { pathname, origin } = new URL(request.url ?? '/', remote.url)
    if (pathname.startsWith('/.well-known/oauth-protected-resource'))
      return Boolean(send(response, 200, { resource: remote.url, authorization_servers: [auth.url] }))
    if (good.has(request.headers.authorization?.replace(/^Bearer /, '') ?? '')) return false
    const where = `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource"`
    return Boolean(send(response, 401, { error: 'invalid_token' }, { 'www-authenticate': where }))
  })
  return {
    remote,
    issuer: auth.url,
    tokenUrl: `${auth.url}/token`,
    grants,
    revoke: () => good.clear(),
    async [Symbol.asyncDispose]() {
      await remote[Symbol.asyncDispose]()
      await auth[Symbol.asyncDispose]()
    },
  }
}

const isClient = ({ headers }: IncomingMessage) =>
  headers.authorization === `Basic ${Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')}`

/** PKCE: the client that redeems the code must have the verifier of its challenge. */
function isProven(form: URLSearchParams, challenges: Map<string, string>): boolean {
  const code = form.get('code') ?? ''
  const digest = createHash('sha256')
    .update(form.get('code_verifier') ?? '')
    .digest('base64url')
  const challenge = challenges.get(code)
  challenges.delete(code)
  return challenge === digest
}

const metadata = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  registration_endpoint: `${issuer}/register`,
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none'],
})
