import { type AnyService, type AnySlot, type MethodKind, type Principal, SYSTEM, type CallContext } from '@svc/core'
import { contextForged } from '../processes/errors.ts'

type Method = (...args: unknown[]) => unknown
type Methods = Record<string, Method>
type Table = Pick<AnyService | AnySlot, 'methods'>

/**
 * Controls the principals that an isolated plugin can use in calls to the host: its own, or that of a caller that waits for it
 * at this moment. Never the host's own.
 */
export interface BorrowedContexts {
  /**
   * Wraps methods that the host calls in the plugin. While a call runs, the plugin can use its context. The principal of the
   * host (`system`) is replaced by that of the plugin.
   */
  lend(token: Table, stub: object): Methods
  /** The same for reports about the plugin itself: every context is replaced by that of the plugin, whatever the caller. */
  lendToItself(token: Table, stub: object): Methods
  /** Wraps methods that the plugin calls in the host: only a borrowed context or the plugin's own is accepted. */
  guard(token: Table, implementation: object): Methods
}

/** A running call into the plugin, and the principal that the plugin can use meanwhile. */
interface BorrowedContext {
  readonly ctx: CallContext
  readonly as: Principal
}

export function createBorrowedContexts(plugin: string): BorrowedContexts {
  const lent = new Set<BorrowedContext>()
  // The plugin's own principal has no scopes: only the program itself can do everything.
  const own: Principal = Object.freeze({ id: `plugin:${plugin}`, scopes: Object.freeze([]) })
  const trusted = (ctx: CallContext): CallContext => {
    const { id } = ctx.principal
    if (id === SYSTEM.id || id === own.id) return { ...ctx, principal: own }
    const given = lent
      .values()
      .find(borrowedContext => borrowedContext.ctx.requestId === ctx.requestId && borrowedContext.ctx.principal.id === id)
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

/** Maps the methods that an implementation has. */
function each({ methods }: Table, implementation: object, make: (method: Method, kind: MethodKind) => Method): Methods {
  const there = Object.entries(methods).flatMap(([name, kind]): [string, Method][] => {
    const method: unknown = Reflect.get(implementation, name)
    return typeof method === 'function' ? [[name, make((...args) => Reflect.apply(method, implementation, args), kind)]] : []
  })
  return Object.fromEntries(there)
}

// The channel has checked that the last argument is a context.
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
