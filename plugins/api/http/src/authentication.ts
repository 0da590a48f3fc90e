import { type CallContext, codeOf, type Log, messageOf, type SlotView } from '@svc/core'
import type { AuthScheme, Route } from '@svc/core/contracts'
import { follow } from '@svc/storage-kit/follow'
import type { Next } from 'koa'
import { isEndless } from './concurrency-limit.ts'
import type { Context, Middleware, RequestState } from './context.ts'
import { type Ask, type Asked, createAsk, createAsked, type CredentialHeaders, type Holder, prepareAll } from './schemes.ts'
import { authenticationFailed, scopeMissing } from './errors.ts'
import type { Guesses } from './guesses.ts'

/** Who asks, and whether he may. */
export interface Authentication {
  /** Asks every scheme, once before the server opens, whether it can work. Throws AUTHENTICATION_WITHOUT_SCHEME, and what a scheme throws. */
  prepare(callContext: CallContext): Promise<void>
  /** Throws AUTHENTICATION_FAILED, RATE_LIMITED, FORBIDDEN. */
  readonly middleware: Middleware
  /** Whether a credential is asked for. */
  asks(state: RequestState): boolean
  /** Checks the credential of an accepted request again. Returns its expiry, or `undefined` if it is no longer valid or cannot be checked. */
  again(state: RequestState): Promise<Standing | undefined>
}

/** Unix time in milliseconds at which a credential expires; absent if unknown. */
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
  const shows = (state: RequestState) => showsOne(state) || headers.read(state.credentials).length > 0
  const isGuess = (state: RequestState) => headers.read(state.credentials).some(one => !isOfProxy(one))

  const check = async (state: RequestState, who: Asked): Promise<Holder | undefined> => {
    if (state.doubled !== undefined) throw authenticationFailed(`${state.doubled} is given more than once`)
    const holder = await ask(who, state, state.credentials)
    if (holder && isTwo(state)) await refuseStranger(who, state, ask)
    // one that no scheme takes for its own is a guess too: a scheme may tell by its answer that it was near
    if (!holder && (who.own.length > 0 ? shows(state) : isGuess(state))) throw authenticationFailed(STRANGE)
    return holder
  }
  const identify = async (ctx: Context, who: Asked): Promise<Holder> => {
    let holder: Holder | undefined
    try {
      holder = await guesses.guard(ctx.state, () => check(ctx.state, who))
    } catch (error) {
      throw codeOf(error) === 'AUTHENTICATION_FAILED' ? challenged(ctx, who, messageOf(error)) : error
    }
    if (!holder) throw challenged(ctx, who, shows(ctx.state) ? STRANGE : undefined)
    return holder
  }
  const enter = async (ctx: Context, who: Asked, scope: Route['scope'], next: Next) => {
    const { id, scopes } = await identify(ctx, who)
    admit(ctx.state, id, scopes)
    if (!isWithin(scopes, scope)) throw scopeMissing(scope ?? '')
    return next()
  }
  const whoFor = (state: RequestState) => {
    const { scope } = placeOf(state) ?? {}
    return scope === undefined ? undefined : asked(scope)
  }
  return {
    async prepare(callContext) {
      await prepareAll(schemes, enabled, callContext)
      if (enabled || schemes.entries().some(([, { always }]) => always === true)) await guesses.prepare(callContext)
    },
    middleware(ctx, next) {
      const { state } = ctx
      const place = placeOf(state)
      const isOpen = place !== undefined && place.scope === undefined
      const who = isOpen ? undefined : asked(place?.scope)
      if (who) return enter(ctx, who, place?.scope, next)
      admit(state, ANONYMOUS, isOpen && enabled ? NONE : ALL)
      return next()
    },
    asks: state => whoFor(state) !== undefined,
    async again(state) {
      const { scope } = placeOf(state) ?? {}
      const who = whoFor(state)
      if (!who) return {}
      const holder = await ask(who, state, state.credentials).catch(() => undefined)
      return holder?.id === state.principal.id && isWithin(holder.scopes, scope) ? holder : undefined
    },
  }
}

const placeOf = ({ route, mount }: RequestState) => route?.route ?? mount

const isWithin = (scopes: readonly string[], scope: Route['scope']) =>
  scope === undefined || scopes.includes(scope) || scopes.includes('*')

function challenged(ctx: Context, { challenge }: Asked, message?: string) {
  ctx.set('WWW-Authenticate', challenge)
  return authenticationFailed(message)
}

function admit(state: RequestState, id: string, scopes: readonly string[]) {
  const { address, ending, requestId, trace, traceState } = state
  state.principal = { id, scopes, address }
  const callContext = { signal: ending.signal, principal: state.principal, requestId }
  if (trace === undefined) state.callContext = callContext
  else state.callContext = { ...callContext, trace, ...(traceState === undefined ? {} : { traceState }) }
}

/** The two headers that the schemes of svc read. */
const OWN = ['authorization', 'x-api-key'] as const

/** Such a header is a credential even where no loaded scheme reads it. */
const showsOne = ({ credentials }: RequestState) => OWN.some(name => credentials[name] !== undefined)

/** A key and a token; what a proxy before us has asked for itself (Basic, Digest) is none of ours. */
const isTwo = ({ credentials }: RequestState) =>
  credentials['x-api-key'] !== undefined && /^bearer\b/i.test(credentials.authorization ?? '')

/** What a proxy before us has asked for itself. */
const isOfProxy = ([name, value]: readonly [string, string]) => name === 'authorization' && !/^bearer\b/i.test(value)

/** A good credential does not make an unknown one beside it good. */
async function refuseStranger(who: Asked, state: RequestState, ask: Ask): Promise<void> {
  for (const name of OWN) {
    const { [name]: _other, ...rest } = state.credentials
    if (!(await ask(who, state, rest))) throw authenticationFailed('one of the two credentials is none that is known here')
  }
}

interface RevalidationParts {
  readonly schemes: SlotView<AuthScheme>
  readonly authentication: Pick<Authentication, 'again' | 'asks'>
  readonly log: Log
  /** The circumstances of work that no request waits for. */
  readonly lasting: CallContext
}

/** A credential that is taken beyond its own end (clocks differ) is asked for again so often. */
const SECOND = 1_000
/** What a timer of Node can wait for. */
const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Watches streams without an end: each lasts no longer than the credential that opened it. It is asked for again when a scheme tells a change and when it
 * expires; if it is no longer valid or cannot be checked, the server closes the stream.
 */
export function createCredentialRevalidation({ schemes, authentication, log, lasting }: RevalidationParts): Middleware {
  const open = new Map<Context, NodeJS.Timeout | undefined>()
  const watched = new Set<string>()
  /** Streams whose credential is being looked at; true: once more, for something has changed since. */
  const asking = new Map<Context, boolean>()

  /** A scheme that reports changes without end makes no more than one look at a time for each stream. */
  const ask = async (ctx: Context): Promise<void> => {
    if (asking.has(ctx)) return void asking.set(ctx, true)
    do {
      asking.set(ctx, false)
      await look(ctx)
    } while (asking.get(ctx) && open.has(ctx))
    asking.delete(ctx)
  }
  const look = async (ctx: Context): Promise<void> => {
    const standing = await authentication.again(ctx.state)
    if (!open.has(ctx)) return
    if (standing) return arm(ctx, standing.expires)
    ctx.state.refused = 'AUTHENTICATION_FAILED'
    ctx.res.destroy()
  }
  const arm = (ctx: Context, expires: number | undefined) => {
    clearTimeout(open.get(ctx))
    const left = expires === undefined ? undefined : expires - Date.now()
    open.set(
      ctx,
      left === undefined ? undefined : setTimeout(() => void ask(ctx), left > 0 ? Math.min(left, LONGEST_TIMER) : SECOND)
    )
  }
  const watch = (name: string) => {
    watched.add(name)
    const parts = {
      what: `the credentials of ${name}`,
      watch: async (callContext: CallContext) => {
        for await (const _ of schemes.get(name)?.changes?.(callContext) ?? []) for (const ctx of open.keys()) void ask(ctx)
      },
      read: async () => {},
    }
    follow(parts, lasting, log).catch((err: unknown) =>
      log.error({ err, scheme: name }, 'changes of credentials are no longer seen')
    )
  }
  return (ctx, next) => {
    if (ctx.state.gone || !isEndless(ctx) || !authentication.asks(ctx.state)) return next()
    open.set(ctx, undefined)
    ctx.res.once('close', () => {
      clearTimeout(open.get(ctx))
      open.delete(ctx)
    })
    for (const [name, scheme] of schemes.entries()) if (scheme.changes && !watched.has(name)) watch(name)
    // what was taken back since authentication has asked
    void ask(ctx)
    return next()
  }
}
