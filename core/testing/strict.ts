import { AsyncLocalStorage } from 'node:async_hooks'
import { type AnySlot, type Crossing, type MethodKind, type SvcError, svcError, type Use } from '@svc/core'
import { copyPlain, findUnplain } from '@svc/core/processes'
import { fromWire, toWire } from '../processes/errors.ts'
import { plainUse } from '../processes/message.ts'

/** Lets everything cross as it would to another process: cloned, frozen, and checked; what cheats is named with its place. */
export const STRICT: Crossing = {
  service: (token, implementation, by) => crossMethods(token.name, token.methods, implementation as object, by),
  item: (token, item, by, name) => (token.local ? item : crossItem(token, item as object, by, name)),
  tap: (ref, tap, by) => async (value, use) => {
    const [given, crossed] = crossArguments(ref.id, [value, use], by)
    return cross(await told(ref.id, by, () => tap(given, crossed as Use)), `${ref.id}.answer`, by)
  },
}

const PLAIN_MEND = 'contracts carry JSON, undefined, bigint, Date and Uint8Array only; progress is an item of a stream'

function cross<T>(value: T, place: string, by?: string): T {
  const cheat = findUnplain(value, place)
  if (cheat)
    throw svcError('NOT_PLAIN', cheat, { ...(by ? { plugin: by } : {}), where: cheat.split(' ', 1)[0]!, mend: PLAIN_MEND })
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
      const call: Method = (...args) => methods[name]!(...args)
      return [name, (kind === 'call' ? crossCall : crossStream)(`${place}.${name}`, call, by)]
    })
  )
}

/** Whose arguments they are, nobody knows here: the place names them. */
function crossArguments(place: string, args: unknown[], by: string): unknown[] {
  const use = args.at(-1) as Use | undefined
  if (!(use?.signal instanceof AbortSignal)) {
    const mend = 'hand on the use you were given'
    throw svcError('USE_MISSING', `${place} was called without its last argument, use`, { plugin: by, where: place, mend })
  }
  const { signal } = use
  return [
    ...args.slice(0, -1).map((arg, at) => cross(arg, `${place}.args[${at}]`)),
    { ...cross(plainUse(use), `${place}.use`), signal },
  ]
}

function crossCall(place: string, call: Method, by: string): Method {
  return async (...args) => {
    const crossed = crossArguments(place, args, by)
    const answer = await told(place, by, () => {
      const promise = call(...crossed)
      if (!(promise instanceof Promise)) throw notOfKind(place, 'a Promise', by)
      return promise
    })
    return cross(answer, `${place}.result`, by)
  }
}

function crossStream(place: string, call: Method, by: string): Method {
  return (...args) => items(place, call, crossArguments(place, args, by), by)
}

async function* items(place: string, call: Method, args: unknown[], by: string) {
  const source = await told(place, by, async () => iteratorOf(call(...args), place, by))
  let ended = false
  try {
    for (;;) {
      const step = await told(place, by, () => source.next())
      ended = step.done ?? false
      if (ended) return
      yield cross(step.value, `${place}.item`, by)
    }
  } finally {
    if (!ended) await told(place, by, () => source.return())
  }
}

function iteratorOf(answer: unknown, place: string, by: string) {
  const iterator = (answer as AsyncIterable<unknown> | undefined)?.[Symbol.asyncIterator]?.()
  if (!iterator) throw notOfKind(place, 'an AsyncIterable', by)
  if (!iterator.return) throw notOfKind(place, 'an iterator that has return(), so that a reader can leave', by)
  return iterator as Required<AsyncIterator<unknown>>
}

const outside = AsyncLocalStorage.snapshot()

/** Runs the work of the far side: nothing travels to it by AsyncLocalStorage, and an error comes back without its class. */
async function told<T>(place: string, by: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await outside(work)
  } catch (error) {
    throw Object.assign(changed(error, place, by) ?? crossError(error, place, by), { cause: error })
  }
}

function crossError(error: unknown, place: string, by: string): SvcError {
  return fromWire(cross(toWire(error), `${place}.error`, by))
}

// What was given is frozen: writing to it throws, in words that do not say who wrote or what.
const FROZEN = /read only property|not extensible|Cannot delete property|Cannot redefine property/

function changed(error: unknown, place: string, by: string): SvcError | undefined {
  if (!(error instanceof TypeError && FROZEN.test(error.message))) return undefined
  const mend = 'copy it before you change it; a waterfall returns a new value'
  return svcError('ARGUMENT_CHANGED', `${place} changes what it was given: ${error.message}`, { plugin: by, where: place, mend })
}

const notOfKind = (place: string, kind: string, by: string) =>
  svcError('NOT_OF_KIND', `${place} must answer with ${kind}`, {
    plugin: by,
    where: place,
    mend: 'a call returns a Promise, a stream an AsyncIterable',
  })
