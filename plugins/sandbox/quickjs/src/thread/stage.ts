import { type QuickJSContext, type QuickJSDeferredPromise, type QuickJSHandle, Scope } from 'quickjs-emscripten-core'
import { type AskName, type GuestLine, type Job, MOST_CHARACTERS } from '../messages.ts'
import type { World } from './engine.ts'
import { blocked, RunEnded } from './failure.ts'
import { CONSOLE, CONSOLE_MADE, GRANTS } from './prelude.ts'

/** Sends a request to the service. Returns its number; the answer comes later. */
export type Ask = (name: AskName, json: string) => number

export type Answer = { readonly answer: number } & ({ readonly json: string } | { readonly error: string })

/** The result of a piece of the guest's code. */
export type Thrown = { readonly value: QuickJSHandle } | { readonly error: QuickJSHandle }

/** A world with a guest: its console, its requests and the result of the prelude. Disposing of it disposes of all handles that it has returned. */
export interface Stage extends Disposable {
  readonly world: World
  readonly lines: readonly GuestLine[]
  readonly prelude: QuickJSHandle
  /** A member of the prelude's result. */
  own(name: string): QuickJSHandle
  /** The value of an expression of the host. */
  made(expression: string): QuickJSHandle
  text(value: string): QuickJSHandle
  call(work: QuickJSHandle, ...args: QuickJSHandle[]): Thrown
  outcome(result: Result): Thrown
  keep<H extends QuickJSHandle>(handle: H): H
  /** Number of open requests. */
  asked(): number
  /** Passes an answer to the guest. Its continuation runs with the next jobs. */
  settle(answer: Answer): void
}
type Result = ReturnType<QuickJSContext['callFunction']>

/** Sets up a world for a job: console, input, and the granted `fetch` and `files`. */
export function createStage(world: World, job: Job, ask: Ask): Stage {
  const { context } = world
  const scope = new Scope()
  const lines: GuestLine[] = []
  const asked = new Map<number, QuickJSDeferredPromise>()
  const keep = <H extends QuickJSHandle>(handle: H): H => scope.manage(handle)
  const text = (value: string) => keep(context.newString(value))
  const outcome = (result: Result): Thrown => (result.error ? { error: keep(result.error) } : { value: keep(result.value) })
  const made = (expression: string) => keep(context.unwrapResult(context.evalCode(expression, 'sandbox', 0)))
  const call = (work: QuickJSHandle, ...args: QuickJSHandle[]) => outcome(context.callFunction(work, context.undefined, ...args))

  const log: QuickJSHandle = keep(
    context.newFunction('log', (...given) => {
      if (given.length > 0) return note(lines, context, given)
      // called as the getter of `console`, at its first use: most code never uses it
      return context.callFunction(made(CONSOLE_MADE), context.undefined, log)
    })
  )
  const prelude = keep(context.unwrapResult(context.callFunction(world.prelude, context.undefined, log, text(job.input))))
  for (const grant of ['fetch', 'files'] as const) if (job[grant]) call(made(GRANTS[grant]), prelude, asking())

  function asking(): QuickJSHandle {
    let asks = 0
    const question = (name: QuickJSHandle, json: QuickJSHandle) => {
      const what = textOf(context, name, 10) as AskName
      if (!Object.hasOwn(GRANT, what) || !job[GRANT[what]]) throw blocked(what)
      if (asked.size >= AT_ONCE || asks++ >= IN_ALL)
        throw new RangeError(`more than ${AT_ONCE} requests at once, or ${IN_ALL} in all`)
      const deferred = context.newPromise()
      asked.set(ask(what, textOf(context, json, MOST_CHARACTERS * 2)), deferred)
      return deferred.handle
    }
    return keep(context.newFunction('ask', question))
  }
  return {
    world,
    lines,
    prelude,
    keep,
    text,
    outcome,
    made,
    call,
    own: name => keep(context.getProp(prelude, name)),
    asked: () => asked.size,
    settle({ answer, ...said }) {
      const deferred = asked.get(answer)
      asked.delete(answer)
      if (!deferred) return
      if ('json' in said) deferred.resolve(text(said.json))
      else deferred.reject(keep(context.newError(said.error)))
    },
    [Symbol.dispose]() {
      scope.dispose()
      world[Symbol.dispose]()
    },
  }
}

function note(lines: GuestLine[], context: QuickJSContext, [level, line]: readonly QuickJSHandle[]): undefined {
  if (!level || !line || lines.length >= CONSOLE.lines) return undefined
  const word = textOf(context, level, 10)
  // the guest can call this with any level
  if (CONSOLE.levels.includes(word)) lines.push({ level: word, text: textOf(context, line, CONSOLE.characters) })
  return undefined
}

const GRANT: Readonly<Record<AskName, 'fetch' | 'files'>> = { fetch: 'fetch', read: 'files', write: 'files', list: 'files' }
/** Limits of requests of one run: concurrent, and in total. */
const AT_ONCE = 16
const IN_ALL = 1000

/** Reads a text of the guest. Checks its length before the copy, since the text can be huge. Throws if it is not a text, or too long. */
export function textOf(context: QuickJSContext, handle: QuickJSHandle, most: number): string {
  if (context.typeof(handle) !== 'string') throw new RunEnded('failed', 'this must be a string')
  using length = context.getProp(handle, 'length')
  if (context.getNumber(length) > most)
    throw new RunEnded('failed', `a text that leaves the sandbox has more than ${most} characters`)
  return context.getString(handle)
}
