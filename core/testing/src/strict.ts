import { AsyncLocalStorage } from 'node:async_hooks'
import { type AnySlot, type PluginBoundary, type MethodKind, type SvcError, svcError, type CallContext } from '@svc/core'
import { runningPlugin } from './leftovers.ts'
import { copyPlain, findNonPlain, fromWire, plainContext, toWire } from '@svc/runtime'

type Run = <T>(plugin: string, work: () => T) => T

/**
 * Passes all values as between processes: cloned, frozen and checked. A violation is reported with its place. `run` tracks the
 * running plugin.
 */
export function createStrict(run: Run, onLateContext?: LateContextListener): PluginBoundary {
  const contexts = onLateContext && createContextLedger(onLateContext)
  return {
    setup: run,
    service: (token, implementation, by) =>
      crossMethods({ place: token.name, by, run, contexts }, token.methods, implementation as object),
    item: (token, item, by, name) =>
      token.local ? item : crossItem({ place: `${token.name}.${name}`, by, run, contexts }, token, item as object),
    tap: (ref, tap, by) => async (value, ctx) => {
      const side: Side = { place: ref.id, by, run, contexts }
      const [given, crossed] = crossArguments(side, [value, ctx])
      return cross(await runRemote(side, () => tap(given, crossed as CallContext)), `${ref.id}.answer`, by)
    },
  }
}

/** Called when `plugin` passes on the context of a call that has ended, to the method at `place`. */
export type LateContextListener = (plugin: string, place: string) => void

/** The contexts of running and ended calls into plugins. */
interface ContextLedger {
  /** Notes a call into a plugin. Its context ends with it. */
  lend(plugin: string, ctx: CallContext): Disposable
  /** Reports the running plugin if the context belongs to a call into it that has ended. */
  check(ctx: CallContext, place: string): void
}

/** A plugin in its own process loses the context when the call ends, so the kits report a later use. */
function createContextLedger(onLate: LateContextListener): ContextLedger {
  const calls = new Map<string, { running: number }>()
  const keyOf = (plugin: string, { requestId }: CallContext) => `${plugin}\0${requestId}`
  return {
    lend(plugin, ctx) {
      const key = keyOf(plugin, ctx)
      const entry = calls.get(key) ?? { running: 0 }
      entry.running++
      calls.set(key, entry)
      return { [Symbol.dispose]: () => void entry.running-- }
    },
    check(ctx, place) {
      const plugin = runningPlugin()
      if (plugin !== undefined && calls.get(keyOf(plugin, ctx))?.running === 0) onLate(plugin, place)
    },
  }
}

/** The other side of one method or tap. */
interface Side {
  readonly place: string
  readonly by: string
  readonly run: Run
  readonly contexts: ContextLedger | undefined
}

const PLAIN_HINT =
  'Pass only JSON, undefined, bigint, Date and Uint8Array. To report progress, yield items of a stream, and pass no function'

function cross<T>(value: T, place: string, by?: string): T {
  const cheat = findNonPlain(value, place)
  if (cheat)
    throw svcError('NOT_PLAIN', cheat, { ...(by ? { plugin: by } : {}), where: cheat.split(' ', 1)[0]!, hint: PLAIN_HINT })
  return copyPlain(value)
}

function crossItem(side: Side, token: AnySlot, item: object): object {
  const data = Object.entries(item).filter(([key]) => !Object.hasOwn(token.methods, key))
  return Object.freeze({ ...cross(Object.fromEntries(data), side.place, side.by), ...crossMethods(side, token.methods, item) })
}

type Method = (...args: unknown[]) => unknown

function crossMethods(side: Side, table: Readonly<Record<string, MethodKind>>, item: object): Record<string, Method> {
  const methods = item as Record<string, Method | undefined>
  const there = Object.entries(table).filter(([name]) => typeof methods[name] === 'function')
  return Object.fromEntries(
    there.map(([name, kind]) => {
      const call: Method = (...args) => methods[name]!(...args)
      return [name, (kind === 'call' ? crossCall : crossStream)({ ...side, place: `${side.place}.${name}` }, call)]
    })
  )
}

/** The author of the arguments is unknown here, so the place names them. */
function crossArguments({ place, by, contexts }: Side, args: unknown[]): unknown[] {
  const ctx = args.at(-1) as CallContext | undefined
  if (!(ctx?.signal instanceof AbortSignal)) {
    const hint = 'Pass on the context that you received'
    throw svcError('CONTEXT_MISSING', `${place} was called without its last argument, the call context`, {
      plugin: by,
      where: place,
      hint,
    })
  }
  contexts?.check(ctx, place)
  const { signal } = ctx
  return [
    ...args.slice(0, -1).map((arg, at) => cross(arg, `${place}.args[${at}]`)),
    { ...cross(plainContext(ctx), `${place}.use`), signal },
  ]
}

function crossCall(side: Side, call: Method): Method {
  return async (...args) => {
    const crossed = crossArguments(side, args)
    using _lent = side.contexts?.lend(side.by, crossed.at(-1) as CallContext)
    const answer = await runRemote(side, () => {
      const promise = call(...crossed)
      if (!(promise instanceof Promise)) throw notOfKind(side, 'a Promise')
      return promise
    })
    return cross(answer, `${side.place}.result`, side.by)
  }
}

function crossStream(side: Side, call: Method): Method {
  return (...args) => items(side, call, crossArguments(side, args))
}

async function* items(side: Side, call: Method, args: unknown[]) {
  using _lent = side.contexts?.lend(side.by, args.at(-1) as CallContext)
  const source = await runRemote(side, async () => iteratorOf(call(...args), side))
  let ended = false
  try {
    for (;;) {
      const step = await runRemote(side, () => source.next())
      ended = step.done ?? false
      if (ended) return
      yield cross(step.value, `${side.place}.item`, side.by)
    }
  } finally {
    if (!ended) await runRemote(side, () => source.return())
  }
}

function iteratorOf(answer: unknown, side: Side) {
  const iterator = (answer as AsyncIterable<unknown> | undefined)?.[Symbol.asyncIterator]?.()
  if (!iterator) throw notOfKind(side, 'an AsyncIterable')
  if (!iterator.return) throw notOfKind(side, 'an iterator that has return(), so that a reader can leave')
  return iterator as Required<AsyncIterator<unknown>>
}

const outside = AsyncLocalStorage.snapshot()

/** Runs work of the other side: AsyncLocalStorage does not reach it, and errors come back without their class. */
async function runRemote<T>({ place, by, run }: Side, work: () => T | Promise<T>): Promise<T> {
  try {
    return await outside(() => run(by, work))
  } catch (error) {
    throw Object.assign(changed(error, place, by) ?? crossError(error, place, by), { cause: error })
  }
}

function crossError(error: unknown, place: string, by: string): SvcError {
  return fromWire(cross(toWire(error), `${place}.error`, by))
}

// Arguments are frozen: a write throws an error that names neither the author nor the place.
const FROZEN = /read only property|not extensible|Cannot delete property|Cannot redefine property/

function changed(error: unknown, place: string, by: string): SvcError | undefined {
  if (!(error instanceof TypeError && FROZEN.test(error.message))) return undefined
  const hint = 'copy it before you change it; a waterfall returns a new value'
  return svcError('ARGUMENT_CHANGED', `${place} must not change its arguments, which are frozen: ${error.message}`, {
    plugin: by,
    where: place,
    hint,
  })
}

const notOfKind = ({ place, by }: Side, kind: string) =>
  svcError('NOT_OF_KIND', `${place} must answer with ${kind}`, {
    plugin: by,
    where: place,
    hint: 'Return a Promise from a call, and an AsyncIterable from a stream',
  })
