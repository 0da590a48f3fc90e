import { codeOf, messageOf, type Principal, type SlotView, type Use, within } from '@svc/core'
import type { AuthScheme, Route, Store } from '@svc/core/contracts'
import { authenticationFailed, noScheme, schemeFailed, schemeSilent, schemeUnready, scopeMissing, tooMany } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'
import { createGuesses, GUESSES, MINUTE } from './guesses.ts'

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
  readonly store: Pick<Store, 'count'> | undefined
}

type Holder = Pick<Principal, 'id' | 'scopes'> & { readonly expires?: number }

const ANONYMOUS = 'anonymous'
const ALL: readonly string[] = Object.freeze(['*'])
const NONE: readonly string[] = Object.freeze([])
const STRANGE = 'the credential is none that is known here'
/** Headers that carry one credential each: two are a contradiction, whatever they say. */
const SINGLE = ['authorization', 'x-api-key'] as const

export function createAuthentication({ enabled, timeoutMs, schemes, store }: AuthenticationParts): Authentication {
  const asked = createAsked(schemes, enabled)
  const guesses = createGuesses(store)

  const refuse = async (x: Exchange, error: unknown, who: Asked) => {
    if (codeOf(error) !== 'AUTHENTICATION_FAILED') return error
    const wait = await guesses.add(x.address, x.use)
    return wait === undefined ? challenged(x, who, messageOf(error)) : tooMany(GUESSES, MINUTE / 1000, wait)
  }
  const identify = async (x: Exchange, who: Asked): Promise<Holder> => {
    let holder: Holder | undefined
    try {
      refuseDoubled(x)
      holder = await askInTime(who, x, timeoutMs)
      if (holder && isTwo(x)) await refuseStranger(who, x, timeoutMs)
      if (!holder && who.own.length > 0 && showsOne(x)) throw authenticationFailed(STRANGE)
    } catch (error) {
      throw await refuse(x, error, who)
    }
    if (!holder) throw challenged(x, who, showsOne(x) ? STRANGE : undefined)
    return holder
  }
  const whoFor = (x: Exchange) => {
    const { scope } = placeOf(x) ?? {}
    return scope === undefined ? undefined : asked(scope)
  }
  return {
    prepare: use => prepareAll(schemes, enabled, use),
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
      const holder = await askInTime(who, x, timeoutMs).catch(() => undefined)
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

const showsOne = ({ req }: Exchange) => SINGLE.some(name => req.headers[name] !== undefined)

function refuseDoubled({ req }: Exchange) {
  for (const name of SINGLE)
    if (req.headers[name]?.includes(',') && req.headersDistinct[name]!.length > 1)
      throw authenticationFailed(`${name} is given more than once`)
}

/** A key and a token; what a proxy before us has asked for itself (Basic, Digest) is none of ours. */
const isTwo = ({ req: { headers } }: Exchange) =>
  headers['x-api-key'] !== undefined && /^bearer\b/i.test(headers.authorization ?? '')

/** One that nobody knows is not made good by one beside it. */
async function refuseStranger(who: Asked, x: Exchange, ms: number): Promise<void> {
  for (const name of SINGLE) {
    const { [name]: _other, ...headers } = x.req.headers
    if (!(await askInTime(who, x, ms, headers)))
      throw authenticationFailed('one of the two credentials is none that is known here')
  }
}

/** Whoever asks waits for the schemes no longer than that, whether or not they listen to signal and deadline. */
function askInTime({ own, common }: Asked, x: Exchange, ms: number, headers = x.req.headers): Promise<Holder | undefined> {
  const request = { headers: headers as Record<string, string>, address: x.address }
  const deadline = Date.now() + ms
  let current: Named | undefined
  const noting = (one: Named) => (current = one)
  const ask = async (signal: AbortSignal) => {
    const use = { ...x.use, signal, deadline }
    return (await askAll(own, request, use, noting)) ?? (await askAll(common, request, use, noting))
  }
  return within(ms, ask, { signal: x.ending.signal, late: () => schemeSilent(current, ms) })
}

type Request = Parameters<AuthScheme['authenticate']>[0]

/** Every scheme is asked: a credential that one refuses is not made good by another, and two must say the same. */
async function askAll(schemes: readonly Named[], request: Request, use: Use, noting: (one: Named) => void) {
  let holder: Holder | undefined
  for (const one of schemes) {
    noting(one)
    const told = await one.scheme.authenticate(request, use)
    if (!told) continue
    if (holder && holder.id !== told.id) throw authenticationFailed('two different credentials were given')
    holder ??= told
  }
  return holder
}

/** A scheme, its name and whose it is. */
interface Named {
  readonly scheme: AuthScheme
  readonly name: string
  readonly plugin: string | undefined
}

/** Who is asked about requests to the places of one scope. */
interface Asked {
  /** Those that guard these places: whom one of them knows, nobody else is asked about. */
  readonly own: readonly Named[]
  readonly common: readonly Named[]
  readonly challenge: string
}

/** Who is asked about the places of a scope, found anew when the slot has changed; `undefined` where nobody is. */
function createAsked(slot: SlotView<AuthScheme>, enabled: boolean) {
  let version = -1
  let known = new Map<Route['scope'], Asked | undefined>()
  return (scope: Route['scope']) => {
    if (version !== slot.version) known = new Map()
    version = slot.version
    const found = known.get(scope)
    if (found || known.has(scope)) return found
    const asked = askedAbout(namedOf(slot), scope, enabled)
    known.set(scope, asked)
    return asked
  }
}

const namedOf = (slot: SlotView<AuthScheme>): readonly Named[] =>
  slot.entries().map(([name, scheme]) => ({ scheme, name, plugin: slot.owner(name) }))

function askedAbout(all: readonly Named[], scope: Route['scope'], enabled: boolean): Asked | undefined {
  const own = all.filter(
    ({ scheme: { guards, always } }) => guards !== undefined && guards === scope && (enabled || always === true)
  )
  const common = enabled ? all.filter(({ scheme }) => scheme.guards === undefined) : []
  if (!enabled && own.length === 0) return undefined
  const challenge = [...new Set([...common, ...own].map(({ scheme }) => scheme.challenge))].join(', ') || 'none'
  return { own, common, challenge }
}

/** What a plugin says by a code explains itself; the rest says nothing of where it came from. */
const isKnown = (code: string | undefined): code is string => code !== undefined && code !== 'INTERNAL_ERROR'

async function prepareAll(schemes: SlotView<AuthScheme>, enabled: boolean, use: Use): Promise<void> {
  const all = namedOf(schemes)
  if (enabled && all.every(({ scheme }) => scheme.guards !== undefined)) throw noScheme()
  for (const { scheme, name, plugin } of all) {
    if (!enabled && scheme.always !== true) continue
    try {
      await scheme.prepare?.(use)
    } catch (error) {
      const code = codeOf(error)
      throw isKnown(code) ? schemeUnready(code, plugin, error) : schemeFailed(name, plugin, error)
    }
  }
}
