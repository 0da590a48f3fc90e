import type { IncomingMessage } from 'node:http'
import { type CallContext, codeOf, type Log, messageOf, type Principal, type SlotView } from '@svc/core'
import { type AuthScheme, CREDENTIAL_HEADERS, type CredentialHolder } from '@svc/core/contracts'
import { credentialIn } from '@svc/plugin-kit'
import { follow } from '@svc/storage-kit/follow'
import type { Next } from 'koa'
import { isEndless } from './limits.ts'
import type { DigestBody } from './body-digest.ts'
import type { Context, Middleware, RequestState } from './context.ts'
import {
  createAsk,
  createScopeSchemes,
  type CredentialHeaders,
  type VerifiedHolder,
  prepareAll,
  type ScopeSchemes,
} from './schemes.ts'
import { authenticationFailed, scopeMissing } from './errors.ts'
import type { Guesses } from './guesses.ts'

/** Identifies the caller of a request and checks its scope. */
export interface Authentication {
  /** Calls `prepare` of every scheme, once before the server opens. Throws AUTHENTICATION_WITHOUT_SCHEME and errors of schemes. */
  prepare(callContext: CallContext): Promise<void>
  /** Throws AUTHENTICATION_FAILED, RATE_LIMITED, FORBIDDEN. */
  readonly middleware: Middleware
  /** Whether the request needs a credential. */
  asks(state: RequestState): boolean
  /** Checks the credential of an accepted request again. Returns its expiry, or `undefined` if it is no longer valid or cannot be checked. */
  again(ctx: Context): Promise<CredentialExpiry | undefined>
}

/** Unix time in milliseconds at which a credential expires; absent if unknown. */
type CredentialExpiry = Pick<VerifiedHolder, 'expires'>

interface AuthenticationOptions {
  readonly enabled: boolean
  /** Milliseconds that all schemes together have for a request. */
  readonly timeoutMs: number
  readonly schemes: SlotView<AuthScheme>
  readonly headers: CredentialHeaders
  readonly digestBody: DigestBody
  readonly guesses: Guesses
  /** The principal of a request of the operator of this machine, which needs no credential. */
  readonly operatorOf: (req: IncomingMessage) => Principal | undefined
}

const ANONYMOUS = 'anonymous'
const ALL: readonly string[] = Object.freeze(['*'])
const NONE: readonly string[] = Object.freeze([])
const UNKNOWN = 'the credential is not known'

export function createAuthentication(options: AuthenticationOptions): Authentication {
  const { enabled, timeoutMs: ms, schemes, headers, digestBody, guesses, operatorOf } = options
  const schemesFor = createScopeSchemes(schemes, enabled, scheme => headers.isSound(scheme))
  const ask = createAsk({ headers, digestBody, ms })
  const askAgain = createAsk({ headers, digestBody, ms, isRecheck: true })
  const { hasCredential, isGuess } = createRecognition(headers)
  const check = async (ctx: Context, who: ScopeSchemes): Promise<VerifiedHolder | undefined> => {
    const { state } = ctx
    if (state.repeatedHeader !== undefined) throw authenticationFailed(`${state.repeatedHeader} is given more than once`)
    credentialIn(state.credentials) // refuses two different credentials, whether or not they are known
    const holder = await ask(who, ctx, state.credentials)
    // a credential that no scheme recognizes counts as a guess too, otherwise the answer would reveal which formats exist
    if (!holder && (who.own.length > 0 ? hasCredential(state) : isGuess(state))) throw authenticationFailed(UNKNOWN)
    return holder
  }
  const identify = async (ctx: Context, who: ScopeSchemes): Promise<VerifiedHolder> => {
    let holder: VerifiedHolder | undefined
    try {
      holder = await guesses.guard(ctx.state, () => check(ctx, who))
    } catch (error) {
      throw codeOf(error) === 'AUTHENTICATION_FAILED' ? challenged(ctx, who, messageOf(error)) : error
    }
    if (!holder) throw challenged(ctx, who, hasCredential(ctx.state) ? UNKNOWN : undefined)
    return holder
  }
  const enter = async (ctx: Context, who: ScopeSchemes, next: Next) => {
    const holder = await identify(ctx, who)
    admit(ctx.state, holder)
    if (!isWithin(holder.scopes, ctx.state)) throw scopeMissing(targetOf(ctx.state)?.scope ?? '')
    return next()
  }
  const whoFor = (state: RequestState) => {
    const { scope } = targetOf(state) ?? {}
    return scope === undefined ? undefined : schemesFor(scope)
  }
  return {
    async prepare(callContext) {
      await prepareAll(schemes, enabled, callContext)
      if (enabled || schemes.entries().some(([, { always }]) => always === true)) await guesses.prepare(callContext)
    },
    middleware(ctx, next) {
      const { state } = ctx
      const operator = operatorOf(ctx.req)
      if (operator) return enterAsOperator(state, operator, next)
      const target = targetOf(state)
      const isOpen = target !== undefined && target.scope === undefined
      const who = isOpen ? undefined : schemesFor(target?.scope)
      if (who) return enter(ctx, who, next)
      admit(state, { id: ANONYMOUS, scopes: isOpen && enabled ? NONE : ALL })
      return next()
    },
    asks: state => !state.isOperator && whoFor(state) !== undefined,
    async again(ctx) {
      const { state } = ctx
      const who = whoFor(state)
      if (!who) return {}
      const holder = await askAgain(who, ctx, state.credentials).catch(() => undefined)
      return holder?.id === state.principal.id && isWithin(holder.scopes, state) ? holder : undefined
    },
  }
}

/** Recognizes requests with credentials. */
const createRecognition = (headers: Pick<CredentialHeaders, 'read'>) => ({
  hasCredential: (state: RequestState) => hasStandardHeader(state) || headers.read(state.credentials).length > 0,
  isGuess: (state: RequestState) => headers.read(state.credentials).some(credential => !isOfProxy(credential)),
})

const targetOf = ({ route, mount }: RequestState) => route?.route ?? mount

/** Whether these scopes allow the request. `admin` implies reading: the scope `read`, and each GET route of other scopes. */
function isWithin(scopes: readonly string[], state: RequestState): boolean {
  const { scope } = targetOf(state) ?? {}
  if (scope === undefined || scopes.includes(scope) || scopes.includes('*')) return true
  return scopes.includes('admin') && (scope === 'read' || state.route?.route.method === 'GET')
}

function challenged(ctx: Context, { challenge }: ScopeSchemes, message?: string) {
  ctx.set('WWW-Authenticate', challenge)
  return authenticationFailed(message)
}

function admit(state: RequestState, holder: CredentialHolder & Partial<VerifiedHolder>) {
  const { address, ending, requestId, trace, traceState } = state
  state.principal = { ...holder, address }
  const callContext = { signal: ending.signal, principal: state.principal, requestId }
  if (trace === undefined) state.callContext = callContext
  else state.callContext = { ...callContext, trace, ...(traceState === undefined ? {} : { traceState }) }
}

/** The control socket has checked the user already. */
function enterAsOperator(state: RequestState, operator: Principal, next: Next) {
  state.isOperator = true
  admit(state, operator)
  return next()
}

/** Whether the request has a header for keys and tokens. They count as credentials even if no loaded scheme reads them. */
const hasStandardHeader = ({ credentials }: RequestState) =>
  CREDENTIAL_HEADERS.names.some(name => credentials[name] !== undefined)

/** Whether the credential is for a proxy in front of the server (Basic, Digest). */
const isOfProxy = ([name, value]: readonly [string, string]) => name === 'authorization' && !/^bearer\b/i.test(value)

interface RevalidationOptions {
  readonly schemes: SlotView<AuthScheme>
  readonly authentication: Pick<Authentication, 'again' | 'asks'>
  readonly log: Log
  /** The context for work outside a request. */
  readonly lasting: CallContext
}

/** Interval for checking a credential that a scheme accepts after its expiry, because clocks differ. */
const SECOND = 1_000
/** The longest delay of a Node timer. */
const LONGEST_TIMER = 2 ** 31 - 1

/**
 * Closes an endless stream when the credential that opened it becomes invalid. The server checks the credential again when a scheme reports a change and when the
 * credential expires. If the credential is no longer valid or cannot be checked, the server closes the stream.
 */
export function createCredentialRevalidation({ schemes, authentication, log, lasting }: RevalidationOptions): Middleware {
  const open = new Map<Context, NodeJS.Timeout | undefined>()
  const watched = new Set<string>()
  /** Streams whose credential is being checked; true: check again, because a change was reported since. */
  const asking = new Map<Context, boolean>()

  /** Runs at most one check at a time for each stream, however often a scheme reports changes. */
  const ask = async (ctx: Context): Promise<void> => {
    if (asking.has(ctx)) return void asking.set(ctx, true)
    do {
      asking.set(ctx, false)
      await checkAgain(ctx)
    } while (asking.get(ctx) && open.has(ctx))
    asking.delete(ctx)
  }
  const checkAgain = async (ctx: Context): Promise<void> => {
    const credential = await authentication.again(ctx)
    if (!open.has(ctx)) return
    if (credential) return arm(ctx, credential.expires)
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
      log.error({ err, scheme: name }, 'the server no longer receives changes of credentials from this scheme')
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
    // the credential can have been revoked since the authentication middleware checked it
    void ask(ctx)
    return next()
  }
}
