import { type AnySlot, type Crossing, type MethodKind, svcError, type Use } from '@svc/core'
import { copyPlain, findUnplain } from '@svc/core/processes'

/** Lets everything cross as it would to another process: cloned, frozen, and checked; what cheats is named with its place. */
export const STRICT: Crossing = {
  service: (token, implementation, by) => crossMethods(token.name, token.methods, implementation as object, by),
  item: (token, item, by, name) => (token.local ? item : crossItem(token, item as object, by, name)),
  tap: (ref, tap, by) => async (value, use) => cross(await tap(cross(value, ref.id, by), use), `${ref.id}.answer`, by),
}

function cross<T>(value: T, place: string, by: string): T {
  const cheat = findUnplain(value, place)
  if (cheat)
    throw svcError('NOT_PLAIN', cheat, { plugin: by, mend: 'contracts carry JSON, undefined, bigint, Date and Uint8Array only' })
  return copyPlain(value)
}

function crossItem(token: AnySlot, item: object, by: string, name: string): object {
  const data = Object.entries(item).filter(([key]) => !Object.hasOwn(token.methods, key))
  const place = `${token.name}.${name}`
  return Object.freeze({ ...cross(Object.fromEntries(data), place, by), ...crossMethods(place, token.methods, item, by) })
}

type Method = (...args: unknown[]) => unknown

function crossMethods(
  place: string,
  table: Readonly<Record<string, MethodKind>>,
  item: object,
  by: string
): Record<string, Method> {
  const methods = item as Record<string, Method | undefined>
  const there = Object.entries(table).filter(([name]) => typeof methods[name] === 'function')
  return Object.fromEntries(
    there.map(([name, kind]) => {
      const call: Method = (...args) => methods[name]!(...crossArguments(`${place}.${name}`, args, by))
      return [name, kind === 'call' ? crossCall(`${place}.${name}`, call, by) : crossStream(`${place}.${name}`, call, by)]
    })
  )
}

function crossArguments(place: string, args: unknown[], by: string): unknown[] {
  const use = args.at(-1) as Use | undefined
  if (!(use?.signal instanceof AbortSignal)) {
    throw svcError('USE_MISSING', `${place} was called without its last argument, use`, {
      plugin: by,
      mend: 'hand on the use you were given',
    })
  }
  return [...args.slice(0, -1).map((arg, at) => cross(arg, `${place}.args[${at}]`, by)), use]
}

function crossCall(place: string, call: Method, by: string): Method {
  return async (...args) => {
    const answer = call(...args)
    if (!(answer instanceof Promise)) throw notOfKind(place, 'a Promise', by)
    return cross(await answer, `${place}.result`, by)
  }
}

function crossStream(place: string, call: Method, by: string): Method {
  return (...args) => {
    const answer = call(...args) as AsyncIterable<unknown>
    if (typeof answer?.[Symbol.asyncIterator] !== 'function') throw notOfKind(place, 'an AsyncIterable', by)
    return (async function* () {
      for await (const item of answer) yield cross(item, `${place}.item`, by)
    })()
  }
}

const notOfKind = (place: string, kind: string, by: string) =>
  svcError('NOT_OF_KIND', `${place} must answer with ${kind}`, {
    plugin: by,
    mend: 'a call returns a Promise, a stream an AsyncIterable',
  })
