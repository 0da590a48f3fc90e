import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** What the authorization server, or the tool server that names it, does wrong. */
export interface Treason {
  /** Of the tool server: the authorization server that it names in place of its own. */
  readonly names?: string
  /** Of the tool server: where the metadata of the resource is said to be. */
  readonly metadataAt?: string
  /** What differs in the metadata of the authorization server. */
  readonly metadata?: (own: string) => Record<string, unknown>
  /** What comes back to the client with the code. */
  readonly answer?: (answer: Record<string, string | undefined>) => Record<string, string | undefined>
  /** What the token endpoint answers: it is given what it was sent. */
  readonly token?: (form: URLSearchParams, request: IncomingMessage) => { readonly status: number; readonly body: string }
  /** What the metadata of the authorization server redirects to. */
  readonly redirects?: string
}

/** A request as a server got it. */
interface Got {
  readonly path: string
  readonly body: string
  readonly authorization: string | undefined
}

export interface Opened extends AsyncDisposable {
  /** Without a slash at its end. */
  readonly url: string
  readonly got: readonly Got[]
}

type Answer = (got: Got, at: URL, response: ServerResponse, request: IncomingMessage) => void

/** A server on a free port of the loopback that keeps what it gets. */
export async function listening(answer: Answer): Promise<Opened> {
  const got: Got[] = []
  const server = createServer((request, response) => {
    void text(request).then(body => {
      const { url: path = '/', headers } = request
      const found = { path, body, authorization: headers.authorization }
      got.push(found)
      answer(found, new URL(path, url), response, request)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    got,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

/** An authorization server that logs everybody in at once, and misbehaves as configured. */
export function openAuthority(treason: Treason = {}): Promise<Opened & { readonly challenges: Map<string, string> }> {
  const challenges = new Map<string, string>()
  const opened = listening(({ body }, at, response, request) => {
    const own = at.origin
    if (at.pathname.startsWith('/.well-known/')) {
      if (treason.redirects !== undefined) return void response.writeHead(302, { location: treason.redirects }).end()
      return json(response, 200, { ...metadataOf(own), ...treason.metadata?.(own) })
    }
    if (at.pathname === '/register') return json(response, 201, { ...(JSON.parse(body) as object), client_id: 'registered' })
    if (at.pathname === '/authorize') return comeBack(at, treason, challenges, response)
    if (at.pathname !== '/token') return json(response, 404, {})
    const form = new URLSearchParams(body)
    const said = treason.token?.(form, request)
    if (said) return void response.writeHead(said.status, { 'content-type': 'application/json' }).end(said.body)
    const proof = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (challenges.get(form.get('code') ?? '') !== proof) return json(response, 400, { error: 'invalid_grant' })
    return json(response, 200, {
      access_token: `token-${randomUUID()}`,
      refresh_token: `refresh-${randomUUID()}`,
      token_type: 'Bearer',
      expires_in: 3600,
    })
  })
  return opened.then(item => Object.assign(item, { challenges }))
}

function comeBack(at: URL, treason: Treason, challenges: Map<string, string>, response: ServerResponse): void {
  const code = `code-${randomUUID()}`
  challenges.set(code, at.searchParams.get('code_challenge') ?? '')
  const back = new URL(at.searchParams.get('redirect_uri') ?? '')
  const answer: Record<string, string | undefined> = { code, state: at.searchParams.get('state') ?? '' }
  for (const [name, value] of Object.entries(treason.answer?.(answer) ?? answer))
    if (value !== undefined) back.searchParams.set(name, value)
  response.writeHead(302, { location: back.href }).end()
}

const metadataOf = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  registration_endpoint: `${issuer}/register`,
  response_types_supported: ['code'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: ['none', 'client_secret_post'],
})

/** A tool server that wants a token of this authorization server. With one it answers that its session is over: what is looked at is the login. */
export const openGuarded = (issuer: string, treason: Treason = {}): Promise<Opened> =>
  listening(({ authorization }, at, response) => {
    if (at.pathname.startsWith('/.well-known/oauth-protected-resource'))
      return json(response, 200, { resource: `${at.origin}/mcp`, authorization_servers: [treason.names ?? issuer] })
    if (authorization !== undefined) return json(response, 500, { error: `no session for ${authorization}` })
    const where = treason.metadataAt ?? `${at.origin}/.well-known/oauth-protected-resource/mcp`
    return json(response, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${where}"` })
  })
