import { codeOf, messageOf, type Principal, type SlotView, type Use } from '@svc/core'
import type { AuthScheme, Store } from '@svc/core/contracts'
import { authenticationFailed, noScheme, schemeFailed, scopeMissing, tooMany } from './errors.ts'
import type { Exchange, Gate } from './exchange.ts'
import { createGuesses, GUESSES, MINUTE } from './guesses.ts'

/** Who asks, and whether he may. */
export interface Authentication {
  /** Asks every scheme, once before the server opens, whether it can work. Throws AUTHENTICATION_WITHOUT_SCHEME, and what a scheme throws. */
  prepare(use: Use): Promise<void>
  /** The gate. Throws AUTHENTICATION_FAILED, RATE_LIMITED, FORBIDDEN. */
  readonly gate: Gate
}

interface AuthenticationParts {
  readonly enabled: boolean
  readonly schemes: SlotView<AuthScheme>
  readonly store: Pick<Store, 'count'> | undefined
}

type Holder = Pick<Principal, 'id' | 'scopes'>

const ANONYMOUS = 'anonymous'
const ALL: readonly string[] = Object.freeze(['*'])
const NONE: readonly string[] = Object.freeze([])
/** What no scheme has said by then it need not say: it bounds one that lives in a process of its own. */
const ASK_MS = 10_000
/** Headers that carry one credential each: two are a contradiction, whatever they say. */
const SINGLE = ['authorization', 'x-api-key'] as const

export function createAuthentication({ enabled, schemes, store }: AuthenticationParts): Authentication {
  if (!enabled) return { prepare: async () => {}, gate: x => admit(x, ANONYMOUS, ALL) }
  const asked = createAsked(schemes)
  const guesses = createGuesses(store)

  const refuse = async (x: Exchange, error: unknown) => {
    if (codeOf(error) !== 'AUTHENTICATION_FAILED') return error
    const wait = await guesses.add(x.address, x.use)
    return wait === undefined ? challenged(x, messageOf(error)) : tooMany(GUESSES, MINUTE / 1000, wait)
  }
  const challenged = (x: Exchange, message?: string) => {
    x.headers.push('WWW-Authenticate', asked().challenge)
    return authenticationFailed(message)
  }
  const identify = async (x: Exchange): Promise<Holder> => {
    let holder: Holder | undefined
    try {
      refuseDoubled(x)
      holder = await askAll(asked().schemes, x)
    } catch (error) {
      throw await refuse(x, error)
    }
    if (!holder) throw challenged(x)
    return holder
  }
  return {
    prepare: use => prepareAll(schemes, use),
    gate(x) {
      const place = x.route?.route ?? x.mount
      if (place && place.scope === undefined) return admit(x, ANONYMOUS, NONE)
      return identify(x).then(({ id, scopes }) => {
        admit(x, id, scopes)
        if (place?.scope !== undefined && !scopes.includes(place.scope) && !scopes.includes('*')) throw scopeMissing(place.scope)
      })
    },
  }
}

function admit(x: Exchange, id: string, scopes: readonly string[]) {
  x.principal = { id, scopes, address: x.address }
  const use = { signal: x.ending.signal, principal: x.principal, requestId: x.requestId }
  x.use = x.trace === undefined ? use : { ...use, trace: x.trace }
}

function refuseDoubled({ req }: Exchange) {
  for (const name of SINGLE)
    if (req.headers[name]?.includes(',') && req.headersDistinct[name]!.length > 1)
      throw authenticationFailed(`${name} is given more than once`)
}

/** Every scheme is asked: a credential that one refuses is not made good by another, and two must say the same. */
async function askAll(schemes: readonly AuthScheme[], x: Exchange): Promise<Holder | undefined> {
  const request = { headers: x.req.headers as Record<string, string>, address: x.address }
  const use = { ...x.use, deadline: Date.now() + ASK_MS }
  let holder: Holder | undefined
  for (const scheme of schemes) {
    const told = await scheme.authenticate(request, use)
    if (!told) continue
    if (holder && holder.id !== told.id) throw authenticationFailed('two different credentials were given')
    holder ??= told
  }
  return holder
}

/** What is asked of the slot for every request, read anew when the slot has changed. */
function createAsked(slot: SlotView<AuthScheme>) {
  let version = -1
  let now: { readonly schemes: readonly AuthScheme[]; readonly challenge: string }
  return () => {
    if (version !== slot.version) {
      version = slot.version
      const schemes = slot.entries().map(([, scheme]) => scheme)
      now = { schemes, challenge: [...new Set(schemes.map(one => one.challenge))].join(', ') || 'none' }
    }
    return now
  }
}

/** What a plugin says by a code explains itself; the rest says nothing of where it came from. */
const isKnown = (code: string | undefined) => code !== undefined && code !== 'INTERNAL_ERROR'

async function prepareAll(schemes: SlotView<AuthScheme>, use: Use): Promise<void> {
  if (schemes.size === 0) throw noScheme()
  for (const [name, scheme] of schemes.entries()) {
    try {
      await scheme.prepare?.(use)
    } catch (error) {
      throw isKnown(codeOf(error)) ? error : schemeFailed(name, schemes.owner(name), error)
    }
  }
}
