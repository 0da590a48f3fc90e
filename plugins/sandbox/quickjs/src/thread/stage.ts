import { type QuickJSContext, type QuickJSDeferredPromise, type QuickJSHandle, Scope } from 'quickjs-emscripten-core'
import { type AskName, type GuestLine, type Job, MOST_CHARACTERS } from '../messages.ts'
import type { World } from './engine.ts'
import { blocked, Ended } from './failure.ts'
import { CONSOLE, CONSOLE_MADE, GRANTS } from './prelude.ts'

/** The service, as a run sees it: a question gets a number, the answer comes later. */
export type Ask = (name: AskName, json: string) => number

export type Answer = { readonly answer: number } & ({ readonly json: string } | { readonly error: string })

/** How a piece of the guest's code ended. */
export type Thrown = { readonly value: QuickJSHandle } | { readonly error: QuickJSHandle }

/** A world with a guest in it: what it says and asks, and what the prelude answered. All handles that it gives go with it. */
export interface Stage extends Disposable {
  readonly world: World
  readonly lines: readonly GuestLine[]
  readonly prelude: QuickJSHandle
  /** A member of what the prelude answered. */
  own(name: string): QuickJSHandle
  /** The value of an expression of ours. */
  made(expression: string): QuickJSHandle
  text(value: string): QuickJSHandle
  call(work: QuickJSHandle, ...args: QuickJSHandle[]): Thrown
  outcome(result: Result): Thrown
  keep<H extends QuickJSHandle>(handle: H): H
  /** How many questions are open. */
  asked(): number
  /** Hands an answer to the guest; what waits for it runs with the next jobs. */
  settle(answer: Answer): void
}
type Result = ReturnType<QuickJSContext['callFunction']>

/** Sets up a world for a job: console, input, and of the rest what the job grants. */
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
      // as a getter, asked once: most code never asks
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
        throw new RangeError(`more than ${AT_ONCE} questions at once, or ${IN_ALL} in all`)
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
  // The guest can call this itself.
  if (CONSOLE.levels.includes(word)) lines.push({ level: word, text: textOf(context, line, CONSOLE.characters) })
  return undefined
}

const GRANT: Readonly<Record<AskName, 'fetch' | 'files'>> = { fetch: 'fetch', read: 'files', write: 'files', list: 'files' }
/** Questions of one run: at once, and in all. */
const AT_ONCE = 16
const IN_ALL = 1000

/** A text of the guest. Its length is looked at first: to copy it may be what it was made for. Throws where it is none, or too long. */
export function textOf(context: QuickJSContext, handle: QuickJSHandle, most: number): string {
  if (context.typeof(handle) !== 'string') throw new Ended('failed', 'this must be a text')
  using length = context.getProp(handle, 'length')
  if (context.getNumber(length) > most)
    throw new Ended('failed', `a text that leaves the sandbox has more than ${most} characters`)
  return context.getString(handle)
}
