import type { AnyService, AnySlot, MethodKind, Principal, Use } from '../src/token.ts'
import { useForged } from '../processes/errors.ts'

type Method = (...args: unknown[]) => unknown
type Methods = Record<string, Method>
type Table = Pick<AnyService | AnySlot, 'methods'>

/** Who an isolated plugin may say that it asks for: itself, or whoever is waiting for it at this moment. */
export interface LentUses {
  /** What the host calls over there: while a call runs, its `use` may come back. */
  lend(token: Table, stub: object): Methods
  /** What is called from over there: only with a `use` that is lent, or as the plugin itself. */
  guard(token: Table, implementation: object): Methods
}

export function createLentUses(plugin: string): LentUses {
  const lent = new Set<Use>()
  // Its own work carries no rights over what others own: who may do everything is the program itself, and a stranger's process is not that.
  const own: Principal = Object.freeze({ id: `plugin:${plugin}`, scopes: Object.freeze([]) })
  const trusted = (use: Use): Use => {
    const given = lent.values().find(one => one.requestId === use.requestId && one.principal.id === use.principal.id)
    if (given) return { ...use, principal: given.principal }
    if (use.principal.id !== 'system' && use.principal.id !== own.id) throw useForged(plugin, use.principal.id, use.requestId)
    return { ...use, principal: own }
  }
  return {
    lend: (token, stub) =>
      each(token, stub, (method, kind) => (kind === 'call' ? callWhile(lent, method) : streamWhile(lent, method))),
    guard: (token, implementation) =>
      each(
        token,
        implementation,
        method =>
          (...args) =>
            method(...args.slice(0, -1), trusted(useOf(args)))
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
const useOf = (args: unknown[]) => args.at(-1) as Use

/** An own object for each call: two of them may carry the same `use`. */
const entryOf = (args: unknown[]): Use => ({ ...useOf(args) })

function callWhile(lent: Set<Use>, method: Method): Method {
  return async (...args) => {
    const entry = entryOf(args)
    lent.add(entry)
    try {
      return await method(...args)
    } finally {
      lent.delete(entry)
    }
  }
}

function streamWhile(lent: Set<Use>, method: Method): Method {
  return async function* (...args) {
    const entry = entryOf(args)
    lent.add(entry)
    try {
      yield* method(...args) as AsyncIterable<unknown>
    } finally {
      lent.delete(entry)
    }
  }
}
