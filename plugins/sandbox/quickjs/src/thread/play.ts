import type { QuickJSHandle } from 'quickjs-emscripten-core'
import { type GuestFailure, type Job, MOST_CHARACTERS, type Outcome } from '../messages.ts'
import type { Engine } from './engine.ts'
import { RunEnded, failureOf, type ThrownError } from './failure.ts'
import { MODULE, READ_THROWN } from './prelude.ts'
import { type Answer, type Ask, createStage, type Stage, textOf, type Thrown } from './stage.ts'

/** A run of code in progress. */
export interface Play {
  /** The outcome, and whether the engine can be used again. */
  readonly end: Promise<{ readonly outcome: Outcome; readonly sound: boolean }>
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
    return { outcome, sound: engine.taken() <= KEPT_BYTES && isDisposed(stage) }
  } catch (error) {
    return { outcome: { lines: stage?.lines ?? [], failure: lost(error, engine, stage) }, sound: false }
  }
}

/** Disposes of the world. Returns false if that fails. */
function isDisposed(stage: Stage): boolean {
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
  if ('error' in begun) return { failure: failureOf(readThrown(stage, begun.error), job.code) }
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
    // a failed job rejects a promise of the guest, which reports the error
    runtime.executePendingJobs(JOBS).error?.dispose()
    inTime(stage)
  }
}

function inTime({ world }: Stage): void {
  if (performance.now() > world.until) throw new RunEnded('timeout', 'it took too long')
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
function readThrown(stage: Stage, error: QuickJSHandle): ThrownError {
  const read = stage.call(stage.made(READ_THROWN), stage.prelude, error)
  inTime(stage)
  if ('error' in read) throw new RunEnded('failed', 'it threw a value that cannot be read')
  const json = textOf(stage.world.context, read.value, MAX_ERROR_CHARACTERS)
  const { name, message, place } = Object(JSON.parse(json)) as Record<string, unknown>
  return { name: wordOf(name), message: wordOf(message), place: wordOf(place) }
}

/** Without memory for an error, the engine throws null. */
function rejectionOf(engine: Engine, stage: Stage, error: QuickJSHandle, code: string): GuestFailure {
  if (isFull(engine) && stage.world.context.sameValue(error, stage.world.context.null))
    throw new RunEnded('memory', 'out of memory')
  return failureOf(readThrown(stage, error), code)
}

const wordOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** The guest waits for a promise that nothing will settle. An engine without memory cannot settle promises either. */
const stuck = (engine: Engine) =>
  isFull(engine)
    ? new RunEnded('memory', 'out of memory')
    : new RunEnded('timeout', 'it waits for a promise that nothing will ever settle')

/** Classifies an error that ended the engine. */
function lost(error: unknown, engine: Engine, stage: Stage | undefined): GuestFailure {
  if (error instanceof RunEnded && error.failure.kind !== 'failed') return error.failure
  if (stage && performance.now() > stage.world.until) return { kind: 'timeout', message: 'it took too long' }
  // V8 has no stack left for the engine, or the engine has no memory left for an error
  if (error instanceof RangeError || isFull(engine) || /out of memory|OOM/.test(String(error)))
    return { kind: 'memory', message: 'out of memory' }
  return error instanceof RunEnded ? error.failure : { kind: 'failed', message: 'the engine stopped' }
}

const FULL = 0.9
const isFull = (engine: Engine) => engine.taken() > engine.memoryBytes * FULL
