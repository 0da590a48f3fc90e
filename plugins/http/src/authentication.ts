import { codeOf, messageOf, type SlotView, type Use } from '@svc/core'
import type { AuthScheme, Route } from '@svc/core/contracts'
import type { CredentialHeaders } from './credentials.ts'
import { authenticationFailed, scopeMissing } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'
import type { Guesses } from './guesses.ts'
import { type Ask, type Asked, createAsk, createAsked, type Holder, prepareAll } from './schemes.ts'

/** Who asks, and whether he may. */
export interface Authentication {
  /** Asks every scheme, once before the server opens, whether it can work. Throws AUTHENTICATION_WITHOUT_SCHEME, and what a scheme throws. */
  prepare(use: Use): Promise<void>
  /** The gate. Throws AUTHENTICATION_FAILED, RATE_LIMITED, FORBIDDEN. */
  readonly gate: Gate
  /** Whether a credential is asked for. */
  asks(x: Exchange): boolean
  /** Asks once more about a request that was let in: whether its credential is still good for the same, and until when. Nothing where it is not, or nobody can say. */
  again(x: Exchange): Promise<Standing | undefined>
}

/** Unix time in milliseconds after which a credential holds no more; absent: nobody knows an end. */
type Standing = Pick<Holder, 'expires'>

interface AuthenticationParts {
  readonly enabled: boolean
  /** Milliseconds that all schemes together have for a request. */
  readonly timeoutMs: number
  readonly schemes: SlotView<AuthScheme>
  readonly headers: CredentialHeaders
  readonly guesses: Guesses
}

const ANONYMOUS = 'anonymous'
const ALL: readonly string[] = Object.freeze(['*'])
const NONE: readonly string[] = Object.freeze([])
const STRANGE = 'the credential is none that is known here'

export function createAuthentication({ enabled, timeoutMs, schemes, headers, guesses }: AuthenticationParts): Authentication {
  const asked = createAsked(schemes, enabled, scheme => headers.isSound(scheme))
  const ask = createAsk(headers, timeoutMs)
  const shows = (x: Exchange) => showsOne(x) || headers.read(x.credentials).length > 0
  const isGuess = (x: Exchange) => headers.read(x.credentials).some(one => !isOfProxy(one))

  const check = async (x: Exchange, who: Asked): Promise<Holder | undefined> => {
    if (x.doubled !== undefined) throw authenticationFailed(`${x.doubled} is given more than once`)
    const holder = await ask(who, x, x.credentials)
    if (holder && isTwo(x)) await refuseStranger(who, x, ask)
    // one that no scheme takes for its own is a guess too: a scheme may tell by its answer that it was near
    if (!holder && (who.own.length > 0 ? shows(x) : isGuess(x))) throw authenticationFailed(STRANGE)
    return holder
  }
  const identify = async (x: Exchange, who: Asked): Promise<Holder> => {
    let holder: Holder | undefined
    try {
      holder = await guesses.guard(x, () => check(x, who))
    } catch (error) {
      throw codeOf(error) === 'AUTHENTICATION_FAILED' ? challenged(x, who, messageOf(error)) : error
    }
    if (!holder) throw challenged(x, who, shows(x) ? STRANGE : undefined)
    return holder
  }
  const whoFor = (x: Exchange) => {
    const { scope } = placeOf(x) ?? {}
    return scope === undefined ? undefined : asked(scope)
  }
  return {
    async prepare(use) {
      await prepareAll(schemes, enabled, use)
      if (enabled || schemes.entries().some(([, { always }]) => always === true)) await guesses.prepare(use)
    },
    gate(x) {
      const place = placeOf(x)
      if (place && place.scope === undefined) return admit(x, ANONYMOUS, enabled ? NONE : ALL)
      const who = asked(place?.scope)
      if (!who) return admit(x, ANONYMOUS, ALL)
      return identify(x, who).then(({ id, scopes }) => {
        admit(x, id, scopes)
        if (!isWithin(scopes, place?.scope)) throw scopeMissing(place?.scope ?? '')
      })
    },
    asks: x => whoFor(x) !== undefined,
    async again(x) {
      const { scope } = placeOf(x) ?? {}
      const who = whoFor(x)
      if (!who) return {}
      const holder = await ask(who, x, x.credentials).catch(() => undefined)
      return holder?.id === x.principal.id && isWithin(holder.scopes, scope) ? holder : undefined
    },
  }
}

const placeOf = ({ route, mount }: Exchange) => route?.route ?? mount

const isWithin = (scopes: readonly string[], scope: Route['scope']) =>
  scope === undefined || scopes.includes(scope) || scopes.includes('*')

function challenged(x: Exchange, { challenge }: Asked, message?: string) {
  x.headers.push('WWW-Authenticate', challenge)
  return authenticationFailed(message)
}

function admit(x: Exchange, id: string, scopes: readonly string[]) {
  x.principal = { id, scopes, address: x.address }
  const use = { signal: x.ending.signal, principal: x.principal, requestId: x.requestId }
  if (x.trace === undefined) x.use = use
  else x.use = { ...use, trace: x.trace, ...(x.traceState === undefined ? {} : { traceState: x.traceState }) }
}

/** The two headers that the schemes of svc read. */
const OWN = ['authorization', 'x-api-key'] as const

/** Such a header is a credential even where no loaded scheme reads it. */
const showsOne = ({ credentials }: Exchange) => OWN.some(name => credentials[name] !== undefined)

/** A key and a token; what a proxy before us has asked for itself (Basic, Digest) is none of ours. */
const isTwo = ({ credentials }: Exchange) =>
  credentials['x-api-key'] !== undefined && /^bearer\b/i.test(credentials.authorization ?? '')

/** What a proxy before us has asked for itself. */
const isOfProxy = ([name, value]: readonly [string, string]) => name === 'authorization' && !/^bearer\b/i.test(value)

/** A good credential does not make an unknown one beside it good. */
async function refuseStranger(who: Asked, x: Exchange, ask: Ask): Promise<void> {
  for (const name of OWN) {
    const { [name]: _other, ...rest } = x.credentials
    if (!(await ask(who, x, rest))) throw authenticationFailed('one of the two credentials is none that is known here')
  }
}
