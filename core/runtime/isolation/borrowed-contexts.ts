import { type AnyService, type AnySlot, type MethodKind, type Principal, SYSTEM, type CallContext } from '@svc/core'
import { contextForged } from '../processes/errors.ts'

type Method = (...args: unknown[]) => unknown
type Methods = Record<string, Method>
type Table = Pick<AnyService | AnySlot, 'methods'>

/** The principals in whose name an isolated plugin may ask: itself, or the caller that waits for it at this moment. Never the host's own. */
export interface BorrowedContexts {
  /** What the host calls over there: while a call runs, its `use` may come back. The principal of the host (`system`) comes back as the plugin itself. */
  lend(token: Table, stub: object): Methods
  /** The same for what the plugin reports about itself: every `use` comes back as the plugin itself, whatever caller wants to know. */
  lendToItself(token: Table, stub: object): Methods
  /** What is called from over there: only with a `use` that is lent, or as the plugin itself. */
  guard(token: Table, implementation: object): Methods
}

/** A call that runs over there, and the principal in whose name it may ask back. */
interface BorrowedContext {
  readonly ctx: CallContext
  readonly as: Principal
}

export function createBorrowedContexts(plugin: string): BorrowedContexts {
  const lent = new Set<BorrowedContext>()
  // Its own work carries no rights over what others own: who may do everything is the program itself, and a stranger's process is not that.
  const own: Principal = Object.freeze({ id: `plugin:${plugin}`, scopes: Object.freeze([]) })
  const trusted = (ctx: CallContext): CallContext => {
    const { id } = ctx.principal
    if (id === SYSTEM.id || id === own.id) return { ...ctx, principal: own }
    const given = lent.values().find(one => one.ctx.requestId === ctx.requestId && one.ctx.principal.id === id)
    if (!given) throw contextForged(plugin, id, ctx.requestId)
    return { ...ctx, principal: given.as }
  }
  const lending = (token: Table, stub: object, asOf: (ctx: CallContext) => Principal) =>
    each(token, stub, (method, kind) => (kind === 'call' ? callWhile : streamWhile)(lent, method, asOf))
  return {
    lend: (token, stub) => lending(token, stub, ctx => ctx.principal),
    lendToItself: (token, stub) => lending(token, stub, () => own),
    guard: (token, implementation) =>
      each(
        token,
        implementation,
        method =>
          (...args) =>
            method(...args.slice(0, -1), trusted(contextOf(args)))
      ),
  }
}

/** The methods of its table that an implementation has, each made into another. */
function each({ methods }: Table, implementation: object, make: (method: Method, kind: MethodKind) => Method): Methods {
  const there = Object.entries(methods).flatMap(([name, kind]): [string, Method][] => {
    const method: unknown = Reflect.get(implementation, name)
    return typeof method === 'function' ? [[name, make((...args) => Reflect.apply(method, implementation, args), kind)]] : []
  })
  return Object.fromEntries(there)
}

// The channel on either side has seen to it that the last argument is one.
const contextOf = (args: unknown[]) => args.at(-1) as CallContext

function callWhile(lent: Set<BorrowedContext>, method: Method, asOf: (ctx: CallContext) => Principal): Method {
  return async (...args) => {
    const ctx = contextOf(args)
    const entry = { ctx, as: asOf(ctx) }
    lent.add(entry)
    try {
      return await method(...args)
    } finally {
      lent.delete(entry)
    }
  }
}

function streamWhile(lent: Set<BorrowedContext>, method: Method, asOf: (ctx: CallContext) => Principal): Method {
  return async function* (...args) {
    const ctx = contextOf(args)
    const entry = { ctx, as: asOf(ctx) }
    lent.add(entry)
    try {
      yield* method(...args) as AsyncIterable<unknown>
    } finally {
      lent.delete(entry)
    }
  }
}
