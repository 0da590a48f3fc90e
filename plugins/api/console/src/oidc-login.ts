import { type CallContext, codeOf, type Log, svcError, type SlotView } from '@svc/core'
import type { AuthScheme, CredentialHolder, CredentialRequest, Store } from '@svc/core/contracts'
import { type OidcClientConfig, secretOf } from './config.ts'
import type { BegunLogin, IssuerTokens, OidcClient } from './oidc-client.ts'
import { createGrants, type Grant, type Grants, OIDC_SPACE } from './oidc-grants.ts'
import { digestOf, type Sessions } from './session.ts'

/** Logins at the issuer of `server.auth.oidc`. */
export interface OidcLogin extends Pick<Grants, 'token' | 'remove'> {
  /** The cookie of a begun login. It is no session. */
  readonly cookie: string
  /** What the button says. `undefined`: there is no scheme of an issuer. */
  describe(): { readonly label: string } | undefined
  /** Begins a login of a page. Throws NOT_FOUND, INVALID_VALUE, UNAVAILABLE. */
  begin(page: LoginPage): Promise<{ readonly url: string; readonly cookie: string; readonly seconds: number }>
  /**
   * Exchanges the answer of the issuer, which the credential contains, for tokens. `cookie`: of the begun login. Throws
   * AUTHENTICATION_FAILED, UNAVAILABLE.
   */
  finish(credential: string, cookie: string | undefined, ctx: CallContext): Promise<CredentialHolder>
  /** Makes a session of what `finish` got, once. Throws AUTHENTICATION_FAILED. */
  take(credential: string, ctx: CallContext): Promise<FinishedLogin>
  /** Where the issuer ends its session, for a principal of it. */
  endSession(principal: string): Promise<string | undefined>
}

interface LoginPage {
  /** The origin that the browser names. */
  readonly origin: string | undefined
  /** Where the person wants to go. */
  readonly place: string | undefined
}

interface FinishedLogin {
  /** For the cookie of the session. */
  readonly text: string
  readonly expires: number
  readonly place: string
}

interface OidcLoginOptions {
  readonly config: OidcClientConfig
  readonly schemes: SlotView<AuthScheme>
  readonly sessions: Sessions
  readonly store: Store
  readonly log: Log
  readonly lasting: CallContext
}

/** In the cookie of a begun login. */
interface Begun extends BegunLogin {
  readonly issuer: string
  readonly place: string
  readonly until: number
}

const PURPOSE = 'login'
/** Time for a login at the issuer. */
const LOGIN_MS = 10 * 60_000
/** Time between the check of the credential and the route, in the same request. */
const HANDOVER_MS = 30_000
const MOST_HANDOVERS = 100
/** A place of the console. Browsers treat a backslash as a slash. */
const PLACE = /^\/console(?:\/(?!\/)[\x21-\x5b\x5d-\x7e]*|\?[\x21-\x5b\x5d-\x7e]*)?$/
const LONGEST_PLACE = 1_000
const HOME = '/console'

/** The answer of the issuer as the page sends it: the query of its address, in base64url. */
const ANSWER = /^console_oidc\.([A-Za-z0-9_-]{1,4000})$/
export const isAnswer = (credential: string): boolean => ANSWER.test(credential)

/** Opens the space for the tokens. Throws CLIENT_SECRET_MISSING. */
export async function createOidcLogin({ config, schemes, sessions, store, log, lasting }: OidcLoginOptions): Promise<OidcLogin> {
  const secret = secretOf(config, process.env)
  await store.open(OIDC_SPACE, lasting)
  const issuerScheme = () => schemes.entries().find(([, { issuer }]) => issuer !== undefined)?.[1]
  // the library is loaded at the first login
  const clientOf = createClients(async issuer =>
    (await import('./oidc-client.ts')).createOidcClient({ issuer, config, secret, log })
  )
  const client = async () => {
    const issuer = issuerScheme()?.issuer
    if (issuer === undefined) throw loginUnknown()
    return clientOf(issuer)
  }
  const holderOf = (tokens: IssuerTokens, ctx: CallContext) => firstHolder(tokens, issuerScheme(), ctx)
  const grants = createGrants({
    store,
    client: { refresh: async token => (await client()).refresh(token), revoke: async token => (await client()).revoke(token) },
    holderOf,
    log,
    signal: lasting.signal,
  })
  const parts = { config, sessions, grants, client, issuer: () => issuerScheme()?.issuer, holderOf }
  return {
    cookie: sessions.cookieFor(PURPOSE),
    describe() {
      const issuer = issuerScheme()?.issuer
      return issuer === undefined ? undefined : { label: config.label ?? new URL(issuer).host }
    },
    token: (credential, ctx) => grants.token(credential, ctx),
    remove: (credential, ctx) => grants.remove(credential, ctx),
    begin: beginning(parts),
    ...finishing(parts),
    async endSession(principal) {
      const issuer = issuerScheme()?.issuer
      if (issuer === undefined || !principal.startsWith(`${issuer}#`)) return undefined
      // the session of the console has ended, whether or not the issuer answers
      return (await client()).endSession().catch(() => undefined)
    },
  }
}

interface LoginParts extends Pick<OidcLoginOptions, 'config' | 'sessions'> {
  readonly grants: Grants
  readonly client: () => Promise<OidcClient>
  readonly issuer: () => string | undefined
  readonly holderOf: (tokens: IssuerTokens, ctx: CallContext) => ReturnType<typeof firstHolder>
}

function beginning({ config, sessions, client, issuer: current }: LoginParts): OidcLogin['begin'] {
  const own = new URL(config.redirect_uri).origin
  return async ({ origin, place = HOME }) => {
    const issuer = current()
    if (issuer === undefined) throw loginUnknown()
    if (origin !== own) throw otherOrigin(own)
    if (place.length > LONGEST_PLACE || !PLACE.test(place)) throw placeInvalid()
    const { url, begun } = await (await client()).begin()
    const cookie: Begun = { ...begun, issuer, place, until: Date.now() + LOGIN_MS }
    return { url, cookie: await sessions.sealText(PURPOSE, JSON.stringify(cookie)), seconds: LOGIN_MS / 1_000 }
  }
}

function finishing({ sessions, grants, client, issuer, holderOf }: LoginParts): Pick<OidcLogin, 'finish' | 'take'> {
  const handover = createHandover<{ readonly grant: Grant; readonly place: string }>()
  return {
    async finish(credential, cookie, ctx) {
      const answer = answerIn(credential)
      const text = cookie === undefined ? undefined : await sessions.openText(PURPOSE, cookie)
      const begun = text === undefined ? undefined : (JSON.parse(text) as Begun)
      if (!begun || begun.until <= Date.now() || begun.issuer !== issuer()) throw loginOver()
      // before the login is used up: an address that someone else made must not end a login that is under way
      if (answer.getAll('state').length !== 1 || digestOf(answer.get('state')!) !== digestOf(begun.state)) throw loginOver()
      if (!(await grants.use(begun.state, begun.until, ctx))) throw loginOver()
      const tokens = await (await client()).exchange(answer, begun)
      const found = await holderOf(tokens, ctx)
      if (!found) throw tokensNotForUs()
      const { token, holder } = found
      const grant = { token, refresh: tokens.refresh, id: holder.id, expires: holder.expires ?? Date.now() + LOGIN_MS }
      handover.put(credential, { grant, place: begun.place })
      return holder
    },
    async take(credential, ctx) {
      const taken = handover.take(credential)
      if (taken?.grant.id !== ctx.principal.id) throw loginOver()
      const { credential: text, expires } = await grants.create(taken.grant, ctx)
      return { text, expires, place: taken.place }
    },
  }
}

/** Asks the scheme of the issuer, and no other, about each token. */
async function firstHolder({ proofs }: IssuerTokens, scheme: AuthScheme | undefined, ctx: CallContext) {
  const request: Omit<CredentialRequest, 'headers'> = { method: 'GET', path: HOME, query: '', address: '' }
  for (const token of proofs) {
    const headers = { authorization: `Bearer ${token}` }
    const holder = await scheme?.authenticate({ ...request, headers }, ctx).catch(ifRefused)
    if (holder && !('needs' in holder)) return { token, holder }
  }
  return undefined
}

function ifRefused(error: unknown): undefined {
  if (codeOf(error) !== 'AUTHENTICATION_FAILED') throw error
}

/** Keeps the client of the current issuer, and its discovery document. */
function createClients(create: (issuer: string) => Promise<OidcClient>): (issuer: string) => Promise<OidcClient> {
  let current: { readonly issuer: string; readonly client: Promise<OidcClient> } | undefined
  return issuer => {
    if (current?.issuer !== issuer) current = { issuer, client: create(issuer) }
    return current.client
  }
}

/** Hands values from the scheme of a request to its route. Both know the credential, which is valid once. */
function createHandover<V>() {
  const values = new Map<string, { readonly value: V; readonly at: number }>()
  return {
    put(key: string, value: V) {
      for (const [old, { at }] of values) if (performance.now() - at > HANDOVER_MS) values.delete(old)
      if (values.size >= MOST_HANDOVERS) throw svcError('UNAVAILABLE', 'too many logins at the same time')
      values.set(key, { value, at: performance.now() })
    },
    take(key: string): V | undefined {
      const found = values.get(key)
      values.delete(key)
      return found?.value
    },
  }
}

const answerIn = (credential: string) =>
  new URLSearchParams(Buffer.from(ANSWER.exec(credential)?.[1] ?? '', 'base64url').toString('utf8'))

const loginOver = () =>
  svcError('AUTHENTICATION_FAILED', 'the login was not started in this browser, or has expired', {
    hint: 'Sign in again at /console',
  })

const tokensNotForUs = () =>
  svcError('AUTHENTICATION_FAILED', 'the tokens of the issuer are not for this server', {
    hint: 'Set server.auth.oidc.audience to the audience of the access token, or request the right audience with console.oidc.parameters',
  })

export const loginUnknown = () =>
  svcError('NOT_FOUND', 'the console has no login at an issuer', {
    hint: 'Set server.auth.oidc.issuer and console.oidc, or sign in with a key or a token',
  })

const otherOrigin = (own: string) =>
  svcError('INVALID_VALUE', `the login begins at ${own}`, {
    details: { field: 'origin', reason: `must be ${own}` },
    hint: `Open ${own}/console, or correct console.oidc.redirect_uri`,
  })

const placeInvalid = () =>
  svcError('INVALID_VALUE', 'place is not an address of the console', {
    details: { field: 'place', reason: 'must begin with /console' },
  })
