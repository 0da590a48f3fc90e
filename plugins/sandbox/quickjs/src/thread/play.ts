import type { QuickJSHandle } from 'quickjs-emscripten-core'
import { type GuestFailure, type Job, MOST_CHARACTERS, type Outcome } from '../messages.ts'
import type { Engine } from './engine.ts'
import { Ended, failureOf, type Told } from './failure.ts'
import { MODULE, TELL } from './prelude.ts'
import { type Answer, type Ask, createStage, type Stage, textOf, type Thrown } from './stage.ts'

/** A run of code that has begun. */
export interface Play {
  /** What came of it, and whether its engine may be used again. */
  readonly end: Promise<{ readonly outcome: Outcome; readonly sound: boolean }>
  /** What the service answered. */
  answer(answer: Answer): void
}

/** The engine's flags: a script whose promise holds its last value, with `await` allowed at its top; a module. */
const SCRIPT = 1 << 7
const IMPORTED = 1
/** Jobs between two looks at the clock. */
const JOBS = 100
/** An engine that took more is not kept: it gives nothing back. */
const KEPT_BYTES = 67_108_864

interface Inbox {
  readonly answers: Answer[]
  wake(): void
}

/** Runs a job in a world of its own. */
export function play(engine: Engine, job: Job, ask: Ask): Play {
  const inbox: Inbox = { answers: [], wake() {} }
  return {
    end: run(engine, job, ask, inbox),
    answer(answer) {
      inbox.answers.push(answer)
      inbox.wake()
    },
  }
}

async function run(engine: Engine, job: Job, ask: Ask, inbox: Inbox): ReturnType<() => Play['end']> {
  let stage: Stage | undefined
  try {
    const world = engine.world()
    world.until = performance.now() + job.timeoutMs
    stage = createStage(world, job, ask)
    const outcome = { lines: stage.lines, ...(await perform(engine, stage, job, inbox)) }
    return { outcome, sound: engine.taken() <= KEPT_BYTES && left(stage) }
  } catch (error) {
    return { outcome: { lines: stage?.lines ?? [], failure: lost(error, engine, stage) }, sound: false }
  }
}

/** Leaves the world as it was found; false where that cannot be. */
function left(stage: Stage): boolean {
  if (stage.asked() > 0) return false
  try {
    stage[Symbol.dispose]()
    return true
  } catch {
    return false
  }
}

type Result = { readonly json: string } | { readonly failure: GuestFailure }

async function perform(engine: Engine, stage: Stage, job: Job, inbox: Inbox): Promise<Result> {
  const { context } = stage.world
  const begun = begin(stage, job)
  inTime(stage)
  if ('error' in begun) return { failure: failureOf(tellOf(stage, begun.error), job.code) }
  for (;;) {
    runJobs(stage)
    const state = context.getPromiseState(begun.value)
    if (state.type === 'fulfilled') return valueOf(textOf(context, stage.keep(state.value), MOST_CHARACTERS))
    if (state.type === 'rejected') return { failure: rejectionOf(engine, stage, stage.keep(state.error), job.code) }
    if (stage.asked() === 0) throw stuck(engine)
    await nextAnswer(inbox, stage.world.until - performance.now())
    inTime(stage)
    for (const answer of inbox.answers.splice(0)) stage.settle(answer)
  }
}

/** The most levels of a value: what reads it later may not be made for more. */
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

/** Lets the code run to its first wait; the value is a promise of a text. */
function begin(stage: Stage, { code, what }: Job): Thrown {
  const { context } = stage.world
  const isScript = what === 'script'
  if (isScript) context.setProp(context.global, 'input', stage.own('input'))
  const work = isScript ? stage.own('script') : stage.made(typeof what === 'string' ? MODULE.describe : MODULE.call)
  const result = stage.outcome(context.evalCode(code, isScript ? 'code.js' : 'plugin.js', isScript ? SCRIPT : IMPORTED))
  if ('error' in result) return result
  if (isScript) return stage.call(work, result.value)
  const words = typeof what === 'string' ? [] : what.map(word => stage.text(word))
  return stage.call(work, stage.prelude, result.value, ...words)
}

function runJobs(stage: Stage): void {
  const { runtime } = stage.world.context
  while (runtime.hasPendingJob()) {
    // A job that fails rejects a promise of the guest: who waits for it hears of it.
    runtime.executePendingJobs(JOBS).error?.dispose()
    inTime(stage)
  }
}

function inTime({ world }: Stage): void {
  if (performance.now() > world.until) throw new Ended('timeout', 'it took too long')
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

/** Characters of JSON that what was thrown may be told in. */
const LONGEST_TOLD = 20_000

/** What the guest threw; to look at it runs code of the guest. */
function tellOf(stage: Stage, error: QuickJSHandle): Told {
  const told = stage.call(stage.made(TELL), stage.prelude, error)
  inTime(stage)
  if ('error' in told) throw new Ended('failed', 'it threw what cannot be told')
  const json = textOf(stage.world.context, told.value, LONGEST_TOLD)
  const { name, message, place } = Object(JSON.parse(json)) as Record<string, unknown>
  return { name: wordOf(name), message: wordOf(message), place: wordOf(place) }
}

/** Without memory for an error the engine throws null. */
function rejectionOf(engine: Engine, stage: Stage, error: QuickJSHandle, code: string): GuestFailure {
  if (isFull(engine) && stage.world.context.sameValue(error, stage.world.context.null)) throw new Ended('memory', 'out of memory')
  return failureOf(tellOf(stage, error), code)
}

const wordOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** Nothing is left that could settle what the guest waits for: without memory the engine cannot settle anything either. */
const stuck = (engine: Engine) =>
  isFull(engine)
    ? new Ended('memory', 'out of memory')
    : new Ended('timeout', 'it waits for a promise that nothing will ever settle')

/** What ended the engine itself. */
function lost(error: unknown, engine: Engine, stage: Stage | undefined): GuestFailure {
  if (error instanceof Ended && error.failure.kind !== 'failed') return error.failure
  if (stage && performance.now() > stage.world.until) return { kind: 'timeout', message: 'it took too long' }
  // V8 has no more stack for the engine, or the engine no more memory to say so.
  if (error instanceof RangeError || isFull(engine) || /out of memory|OOM/.test(String(error)))
    return { kind: 'memory', message: 'out of memory' }
  return error instanceof Ended ? error.failure : { kind: 'failed', message: 'the engine stopped' }
}

const FULL = 0.9
const isFull = (engine: Engine) => engine.taken() > engine.memoryBytes * FULL
