import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'

interface Pair {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

interface Header {
  readonly alg?: string
  /** null: names no key. */
  readonly kid?: string | null
  readonly key?: CryptoKey | Uint8Array
}

/** An issuer on a port of its own: discovery, keys that rotate, tokens of every kind. */
export interface Issuer extends AsyncDisposable {
  readonly url: string
  /** Paths that were asked for. */
  readonly asked: string[]
  /** Signs with a new key from now on; the old one is published no more. */
  rotate(alg?: string): Promise<Pair>
  /** Creates a token, valid by default. */
  token(claims?: JWTPayload, header?: Header): Promise<string>
  /** Answers in another way for a while. */
  answer: ((req: IncomingMessage, res: ServerResponse) => boolean) | undefined
  readonly current: Pair
}

export const AUDIENCE = 'svc'

export async function startIssuer(): Promise<Issuer> {
  const asked: string[] = []
  let pairs = [await makePair('RS256')]
  const server = createServer((req, res) => {
    asked.push(req.url ?? '')
    if (issuer.answer?.(req, res)) return
    const send = (value: unknown) => res.setHeader('content-type', 'application/json').end(JSON.stringify(value))
    if (req.url === '/.well-known/openid-configuration') return void send({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` })
    if (req.url === '/keys') return void send({ keys: pairs.map(pair => pair.jwk) })
    res.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer: Issuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    answer: undefined,
    get current() {
      return pairs[0]!
    },
    async rotate(alg = 'RS256') {
      pairs = [await makePair(alg)]
      return pairs[0]!
    },
    token: (claims, header = {}) => sign(issuer, pairs[0]!, claims, header),
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
  return issuer
}

let made = 0

export async function makePair(alg: string): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  const kid = `key-${++made}`
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

function sign({ url }: Issuer, pair: Pair, claims: JWTPayload = {}, header: Header = {}): Promise<string> {
  const { alg = pair.alg, kid = pair.kid, key = pair.privateKey } = header
  const now = Math.floor(Date.now() / 1000)
  const standard = { iss: url, aud: AUDIENCE, sub: 'anna', iat: now, exp: now + 300, scope: 'openid chat read' }
  const protect = kid === null ? { alg } : { alg, kid }
  return new SignJWT(definedOf({ ...standard, ...claims })).setProtectedHeader(protect).sign(key)
}

const definedOf = (claims: JWTPayload): JWTPayload =>
  Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))

/** A token that says it needs no signature. */
export function unsigned(claims: JWTPayload): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'none' })}.${part(claims)}.`
}
