import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { freePort } from '@svc/testing/engines'
import Provider from 'oidc-provider'
import { type Issuer, startIssuer } from '../../../plugins/api/auth-oidc/test/support/issuer.ts'
import { type Service, startService } from '../../support/service.ts'

const CLIENT = { id: 'console', secret: 'the-secret-of-the-client' }
const AUDIENCE = 'urn:svc'
export const KEY = 'the-key-of-the-operator'

type Claims = Parameters<Issuer['token']>[0]

/** A server whose console has a client at an issuer. */
export async function startAt(issuer: string, port: number, args: readonly string[] = []): Promise<Service> {
  const url = `http://127.0.0.1:${port}`
  const oidc = {
    client_id: CLIENT.id,
    client_secret_env: 'CONSOLE_SECRET',
    redirect_uri: `${url}/console/oidc`,
    post_logout_redirect_uri: `${url}/console`,
    scope: 'openid offline_access read chat',
    parameters: { resource: AUDIENCE },
    label: 'Example',
  }
  return startService({
    ownPort: true,
    args,
    env: {
      SVC_API_KEY: KEY,
      CONSOLE_SECRET: CLIENT.secret,
      SVC_SERVER__PORT: String(port),
      SVC_SERVER__AUTH__ENABLED: 'true',
      SVC_SERVER__AUTH__OIDC: JSON.stringify({ issuer, audience: AUDIENCE }),
      SVC_CONSOLE__OIDC: JSON.stringify(oidc),
      SVC_LOG__LEVEL: 'debug',
    },
  })
}

interface RealIssuer extends AsyncDisposable {
  readonly url: string
  /** Grants that it gave: `authorization_code`, `refresh_token`. */
  readonly grants: string[]
}

/** The certified provider of OpenID Connect, whose access tokens are for svc. */
export async function startProvider(console: string, { seconds = 300 } = {}): Promise<RealIssuer> {
  const url = `http://127.0.0.1:${await freePort()}`
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const grants: string[] = []
  const provider = new Provider(url, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [`${console}/console/oidc`],
        post_logout_redirect_uris: [`${console}/console`],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    scopes: ['openid', 'offline_access'],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig', kid: 'k' }] },
    cookies: { keys: ['a-key-for-cookies'] },
    pkce: { required: () => true },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    findAccount: (_ctx: unknown, id: string) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: async () => true,
        getResourceServerInfo: async () => ({
          scope: 'read chat',
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          accessTokenTTL: seconds,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  })
  provider.on(
    'grant.success',
    ({ oidc }: { oidc: { params: { grant_type: string } } }) => void grants.push(oidc.params.grant_type)
  )
  const server = createServer(provider.callback())
  server.listen(Number(new URL(url).port), '127.0.0.1')
  await once(server, 'listening')
  return {
    url,
    grants,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** An issuer that answers as the test says, also wrongly. */
export interface HostileIssuer extends AsyncDisposable {
  readonly issuer: Issuer
  /** Bodies of the requests to its token endpoint. */
  readonly asked: URLSearchParams[]
  /** Claims of the next tokens. */
  next: {
    readonly nonce?: string
    readonly access?: Claims | undefined
    readonly id?: Claims | undefined
    readonly signer?: Issuer
  }
  /** Members of its discovery document. */
  metadata: Readonly<Record<string, unknown>>
}

export async function startHostile(): Promise<HostileIssuer> {
  const issuer = await startIssuer()
  const hostile: HostileIssuer = {
    issuer,
    asked: [],
    next: {},
    metadata: {},
    [Symbol.asyncDispose]: () => issuer[Symbol.asyncDispose](),
  }
  issuer.answer = (request, response) => {
    const path = request.url ?? ''
    if (path.startsWith('/.well-known/')) return send(response, { ...discovery(issuer.url), ...hostile.metadata })
    if (path !== '/token') return false
    void answerToken(hostile, request, response)
    return true
  }
  return hostile
}

const discovery = (url: string) => ({
  issuer: url,
  jwks_uri: `${url}/keys`,
  authorization_endpoint: `${url}/authorize`,
  token_endpoint: `${url}/token`,
  end_session_endpoint: `${url}/logout`,
  response_types_supported: ['code'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  authorization_response_iss_parameter_supported: true,
})

function send(response: ServerResponse, value: unknown): true {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
  return true
}

async function answerToken({ issuer, asked, next }: HostileIssuer, request: IncomingMessage, response: ServerResponse) {
  let text = ''
  for await (const part of request) text += String(part)
  asked.push(new URLSearchParams(text))
  const signer = next.signer ?? issuer
  const common = { iss: issuer.url, sub: 'anna' }
  send(response, {
    token_type: 'bearer',
    expires_in: 300,
    access_token: await signer.token({ ...common, aud: AUDIENCE, ...next.access }),
    id_token: await signer.token({ ...common, aud: CLIENT.id, nonce: next.nonce, ...next.id }),
    refresh_token: 'the-refresh-token',
  })
}
