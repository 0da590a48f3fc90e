import { codeOf, type SlotView, type CallContext, withTimeout } from '@svc/core'
import type { AuthScheme, Route } from '@svc/core/contracts'
import type { RequestState } from './context.ts'
import { type CredentialHeaders, checkScheme } from './credentials.ts'
import { authenticationFailed, noScheme, schemeFailed, schemeInvalid, schemeSilent, schemeUnready } from './errors.ts'

/** Who holds a credential. */
export type Holder = NonNullable<Awaited<ReturnType<AuthScheme['authenticate']>>>

/** A scheme, its name and whose it is. */
interface Named {
  readonly scheme: AuthScheme
  readonly name: string
  readonly plugin: string | undefined
}

/** Who is asked about requests to the places of one scope. */
export interface Asked {
  /** The schemes that guard these places: the others are asked only about credentials that these do not know. */
  readonly own: readonly Named[]
  readonly common: readonly Named[]
  readonly challenge: string
}

/** The schemes for the places of a scope, found anew when the slot has changed; `undefined` where no credential is asked for. */
export function createAsked(slot: SlotView<AuthScheme>, enabled: boolean, isSound: CredentialHeaders['isSound']) {
  let version = -1
  let known = new Map<Route['scope'], Asked | undefined>()
  return (scope: Route['scope']): Asked | undefined => {
    if (version !== slot.version) known = new Map()
    version = slot.version
    const found = known.get(scope)
    if (found || known.has(scope)) return found
    const asked = askedAbout(
      namedOf(slot).filter(({ scheme }) => isSound(scheme)),
      scope,
      enabled
    )
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

/** Asks the schemes about the credentials of a request; each sees the headers that it declares and no others. */
export type Ask = (asked: Asked, state: RequestState, credentials: RequestState['credentials']) => Promise<Holder | undefined>

/** Waits for the schemes no longer than `ms`, whether or not they listen to signal and deadline. */
export const createAsk =
  (headers: Pick<CredentialHeaders, 'forScheme'>, ms: number): Ask =>
  ({ own, common }, state, credentials) => {
    const deadline = Date.now() + ms
    let current: Named | undefined
    const askOne = (one: Named, callContext: CallContext) => {
      current = one
      return one.scheme.authenticate({ headers: headers.forScheme(one.scheme, credentials), address: state.address }, callContext)
    }
    const ask = async (signal: AbortSignal) => {
      const callContext = { ...state.callContext, signal, deadline }
      return (own.length > 0 ? await askAll(own, callContext, askOne) : undefined) ?? askAll(common, callContext, askOne)
    }
    return withTimeout(ms, ask, { signal: state.ending.signal, late: () => schemeSilent(current, ms) })
  }

/** Ids of callers that the server itself makes. */
const RESERVED = /^(system|anonymous|plugin:.*)$/s
// oxlint-disable-next-line no-control-regex -- it stands in the log and in keys of the store
const CONTROL = /[\u0000-\u001f\u007f]/
const LONGEST_ID = 512

/** What a scheme answers decides what the caller may do: one of another form is a fault of its plugin. Throws SCHEME_INVALID. */
function checkedHolder({ name, plugin }: Named, found: Holder | undefined): Holder | undefined {
  if (found === undefined) return undefined
  const { id, scopes } = Object(found) as { readonly id: unknown; readonly scopes: unknown }
  if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID || CONTROL.test(id) || RESERVED.test(id))
    throw schemeInvalid(name, plugin, 'answered an id that no caller can have')
  if (!Array.isArray(scopes) || !scopes.every(scope => typeof scope === 'string'))
    throw schemeInvalid(name, plugin, 'answered scopes that are not a list of texts')
  return found
}

/** Every scheme is asked: a credential that one refuses is not made good by another, and two must say the same. */
async function askAll(
  schemes: readonly Named[],
  callContext: CallContext,
  ask: (one: Named, callContext: CallContext) => Promise<Holder | undefined>
): Promise<Holder | undefined> {
  let holder: Holder | undefined
  for (const one of schemes) {
    const found = checkedHolder(one, await ask(one, callContext))
    if (!found) continue
    if (holder && holder.id !== found.id) throw authenticationFailed('two different credentials were given')
    holder ??= found
  }
  return holder
}

/** What a plugin says by a code explains itself; the rest says nothing of where it came from. */
const isKnown = (code: string | undefined): code is string => code !== undefined && code !== 'INTERNAL_ERROR'

/** Asks every scheme whether it can work. Throws AUTHENTICATION_WITHOUT_SCHEME, SCHEME_INVALID, and what a scheme throws. */
export async function prepareAll(schemes: SlotView<AuthScheme>, enabled: boolean, callContext: CallContext): Promise<void> {
  const all = namedOf(schemes)
  if (enabled && all.every(({ scheme }) => scheme.guards !== undefined)) throw noScheme()
  for (const { scheme, name, plugin } of all) {
    if (!enabled && scheme.always !== true) continue
    checkScheme(scheme, name, plugin)
    try {
      await scheme.prepare?.(callContext)
    } catch (error) {
      const code = codeOf(error)
      throw isKnown(code) ? schemeUnready(code, plugin, error) : schemeFailed(name, plugin, error)
    }
  }
}
