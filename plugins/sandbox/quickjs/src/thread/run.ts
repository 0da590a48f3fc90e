import { type QuickJSHandle, type QuickJSContext, type QuickJSDeferredPromise, Scope } from 'quickjs-emscripten-core'
import {
  type GuestFailure,
  type GuestTask,
  MOST_CHARACTERS,
  type GuestOutcome,
  type AskName,
  type GuestLine,
} from '../messages.ts'
import type { Engine, World } from './engine.ts'
import { GuestStopped, failureOf, type ThrownError, blocked } from './failure.ts'
import { MODULE, READ_THROWN, CONSOLE, CONSOLE_MADE, GRANTS } from './prelude.ts'

/** A run of code in progress. */
export interface GuestRun {
  /** The outcome, and whether the engine can be used again. */
  readonly end: Promise<{ readonly outcome: GuestOutcome; readonly sound: boolean }>
  /** Passes an answer of the service to the guest. */
  answer(answer: Answer): void
}

/** The engine's flags: a script with top-level `await`, whose promise resolves to its last value; and a module. */
const SCRIPT = 1 << 7
const IMPORTED = 1
/** Jobs between two checks of the deadline. */
const JOBS = 100
/** An engine with more memory is not kept: it never frees memory. */
const KEPT_BYTES = 67_108_864

interface Inbox {
  readonly answers: Answer[]
  wake(): void
}

/** Runs a job in a world of its own. */
export function startRun(engine: Engine, job: GuestTask, ask: SendRequest): GuestRun {
  const inbox: Inbox = { answers: [], wake() {} }
  return {
    end: runJob(engine, job, ask, inbox),
    answer(answer) {
      inbox.answers.push(answer)
      inbox.wake()
    },
  }
}

async function runJob(engine: Engine, job: GuestTask, ask: SendRequest, inbox: Inbox): ReturnType<() => GuestRun['end']> {
  let guest: GuestContext | undefined
  try {
    const world = engine.world()
    world.until = performance.now() + job.timeoutMs
    guest = createGuestContext(world, job, ask)
    const outcome = { lines: guest.lines, ...(await perform(engine, guest, job, inbox)) }
    return { outcome, sound: engine.taken() <= KEPT_BYTES && tryDispose(guest) }
  } catch (error) {
    return { outcome: { lines: guest?.lines ?? [], failure: lost(error, engine, guest) }, sound: false }
  }
}

/** Disposes of the world. Returns false if that fails. */
function tryDispose(guest: GuestContext): boolean {
  if (guest.asked() > 0) return false
  try {
    guest[Symbol.dispose]()
    return true
  } catch {
    return false
  }
}

type Result = { readonly json: string } | { readonly failure: GuestFailure }

async function perform(engine: Engine, guest: GuestContext, job: GuestTask, inbox: Inbox): Promise<Result> {
  const { context } = guest.world
  const begun = begin(guest, job)
  inTime(guest)
  if ('error' in begun) return { failure: failureOf(readThrown(guest, begun.error), job.code) }
  for (;;) {
    runJobs(guest)
    const state = context.getPromiseState(begun.value)
    if (state.type === 'fulfilled') return valueOf(textOf(context, guest.keep(state.value), MOST_CHARACTERS))
    if (state.type === 'rejected') return { failure: rejectionOf(engine, guest, guest.keep(state.error), job.code) }
    if (guest.asked() === 0) throw stuck(engine)
    await nextAnswer(inbox, guest.world.until - performance.now())
    inTime(guest)
    for (const answer of inbox.answers.splice(0)) guest.settle(answer)
  }
}

/** Maximum nesting of a value: later readers of it can be recursive. */
const LEVELS = 200

function valueOf(json: string): Result {
  let depth = 0
  let inText = false
  for (let at = 0; at < json.length; at++) {
    const char = json[at]
    if (inText && char === '\\') at++
    else if (char === '"') inText = !inText
    else if (!inText && (char === '[' || char === '{')) depth++
    else if (!inText && (char === ']' || char === '}')) depth--
    if (depth > LEVELS) return { failure: { kind: 'failed', message: `the value is nested deeper than ${LEVELS} levels` } }
  }
  return { json }
}

/** Runs the code to its first wait. Returns a promise of a text. */
function begin(guest: GuestContext, { code, what }: GuestTask): Thrown {
  const { context } = guest.world
  const isScript = what === 'script'
  if (isScript) context.setProp(context.global, 'input', guest.own('input'))
  const work = isScript ? guest.own('script') : guest.made(typeof what === 'string' ? MODULE.describe : MODULE.call)
  const result = guest.outcome(context.evalCode(code, isScript ? 'code.js' : 'plugin.js', isScript ? SCRIPT : IMPORTED))
  if ('error' in result) return result
  if (isScript) return guest.call(work, result.value)
  const words = typeof what === 'string' ? [] : what.map(word => guest.text(word))
  return guest.call(work, guest.prelude, result.value, ...words)
}

function runJobs(guest: GuestContext): void {
  const { runtime } = guest.world.context
  while (runtime.hasPendingJob()) {
    // a failed job rejects a promise of the guest, which reports the error
    runtime.executePendingJobs(JOBS).error?.dispose()
    inTime(guest)
  }
}

function inTime({ world }: GuestContext): void {
  if (performance.now() > world.until) throw new GuestStopped('timeout', 'it took too long')
}

function nextAnswer(inbox: Inbox, ms: number): Promise<void> {
  if (inbox.answers.length > 0) return Promise.resolve()
  return new Promise(resolve => {
    const timer = setTimeout(resolve, Math.max(0, ms) + 1)
    inbox.wake = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}

/** Maximum characters of a thrown error as JSON. */
const MAX_ERROR_CHARACTERS = 20_000

/** Reads an error that the guest threw. This runs code of the guest (getters). */
function readThrown(guest: GuestContext, error: QuickJSHandle): ThrownError {
  const read = guest.call(guest.made(READ_THROWN), guest.prelude, error)
  inTime(guest)
  if ('error' in read) throw new GuestStopped('failed', 'it threw a value that cannot be read')
  const json = textOf(guest.world.context, read.value, MAX_ERROR_CHARACTERS)
  const { name, message, place } = Object(JSON.parse(json)) as Record<string, unknown>
  return { name: wordOf(name), message: wordOf(message), place: wordOf(place) }
}

/** Without memory for an error, the engine throws null. */
function rejectionOf(engine: Engine, guest: GuestContext, error: QuickJSHandle, code: string): GuestFailure {
  if (isFull(engine) && guest.world.context.sameValue(error, guest.world.context.null))
    throw new GuestStopped('memory', 'out of memory')
  return failureOf(readThrown(guest, error), code)
}

const wordOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** The guest waits for a promise that nothing will settle. An engine without memory cannot settle promises either. */
const stuck = (engine: Engine) =>
  isFull(engine)
    ? new GuestStopped('memory', 'out of memory')
    : new GuestStopped('timeout', 'it waits for a promise that nothing will ever settle')

/** Classifies an error that ended the engine. */
function lost(error: unknown, engine: Engine, guest: GuestContext | undefined): GuestFailure {
  if (error instanceof GuestStopped && error.failure.kind !== 'failed') return error.failure
  if (guest && performance.now() > guest.world.until) return { kind: 'timeout', message: 'it took too long' }
  // V8 has no stack left for the engine, or the engine has no memory left for an error
  if (error instanceof RangeError || isFull(engine) || /out of memory|OOM/.test(String(error)))
    return { kind: 'memory', message: 'out of memory' }
  return error instanceof GuestStopped ? error.failure : { kind: 'failed', message: 'the engine stopped' }
}

const FULL = 0.9
const isFull = (engine: Engine) => engine.taken() > engine.memoryBytes * FULL

/** Sends a request to the service. Returns its number; the answer comes later. */
export type SendRequest = (name: AskName, json: string) => number

type Answer = { readonly answer: number } & ({ readonly json: string } | { readonly error: string })

/** The result of a piece of the guest's code. */
type Thrown = { readonly value: QuickJSHandle } | { readonly error: QuickJSHandle }

/** A world with a guest: its console, its requests and the result of the prelude. Disposing of it disposes of all handles that it has returned. */
interface GuestContext extends Disposable {
  readonly world: World
  readonly lines: readonly GuestLine[]
  readonly prelude: QuickJSHandle
  /** A member of the prelude's result. */
  own(name: string): QuickJSHandle
  /** The value of an expression of the host. */
  made(expression: string): QuickJSHandle
  text(value: string): QuickJSHandle
  call(work: QuickJSHandle, ...args: QuickJSHandle[]): Thrown
  outcome(result: CallResult): Thrown
  keep<H extends QuickJSHandle>(handle: H): H
  /** Number of open requests. */
  asked(): number
  /** Passes an answer to the guest. Its continuation runs with the next jobs. */
  settle(answer: Answer): void
}
type CallResult = ReturnType<QuickJSContext['callFunction']>

/** Sets up a world for a job: console, input, and the granted `fetch` and `files`. */
function createGuestContext(world: World, job: GuestTask, ask: SendRequest): GuestContext {
  const { context } = world
  const scope = new Scope()
  const lines: GuestLine[] = []
  const asked = new Map<number, QuickJSDeferredPromise>()
  const keep = <H extends QuickJSHandle>(handle: H): H => scope.manage(handle)
  const text = (value: string) => keep(context.newString(value))
  const outcome = (result: CallResult): Thrown => (result.error ? { error: keep(result.error) } : { value: keep(result.value) })
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
function textOf(context: QuickJSContext, handle: QuickJSHandle, most: number): string {
  if (context.typeof(handle) !== 'string') throw new GuestStopped('failed', 'this must be a string')
  using length = context.getProp(handle, 'length')
  if (context.getNumber(length) > most)
    throw new GuestStopped('failed', `a text that leaves the sandbox has more than ${most} characters`)
  return context.getString(handle)
}
