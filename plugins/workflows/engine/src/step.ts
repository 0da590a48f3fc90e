import type { PublicError, Json } from '@svc/core/contracts'
import type { CompiledNode, Retry } from './compiled.ts'
import { HOPELESS, interrupted, toPublicError } from './errors.ts'
import type { Execution } from './execution.ts'
import { recallChildren } from './fork.ts'
import { type Frame, StepFailed, Stopped } from './frame.ts'
import type { Past } from './history.ts'
import { type Pause, runNode, type Try } from './node-run.ts'

/** What came of a step; an error where the node catches it. */
export type StepOutcome = { readonly output: Json; readonly branch?: string } | { readonly error: PublicError }

/** One node at one visit, with its retries. Throws StepFailed where it fails and nothing catches it. */
export async function doStep(run: Execution, frame: Frame, node: CompiledNode, step: string): Promise<StepOutcome> {
  const past = run.history.steps.get(step)
  if (past) {
    frame.ledger.spend(past.spent)
    if (past.forks.length > 0) await recallChildren(run, frame, node, step, past)
    if (past.last.t === 'done') return run.kept(frame, node, past.last)
    if (past.last.t === 'failed' && !past.isStale) return caught(node, past.last.error)
  }
  if (frame.isPast) throw new Stopped('only what was done is looked at')
  frame.signal.throwIfAborted()
  run.goesOn()
  if (!past) run.countStep()
  return await new Tries(run, frame, node, step).outcome(past)
}

function caught(node: CompiledNode, error: PublicError): StepOutcome {
  if (node.catch === undefined) throw new StepFailed(error)
  return { error }
}

/** A node that was interrupted more often may be what ends its process: it is not run once more. The supervisor ends the server at the fifth death in a row. */
const MOST_INTERRUPTIONS = 3

/** The tries of one step. */
class Tries {
  readonly #run: Execution
  readonly #frame: Frame
  readonly #node: CompiledNode
  readonly #step: string
  #failures = 0

  constructor(run: Execution, frame: Frame, node: CompiledNode, step: string) {
    this.#run = run
    this.#frame = frame
    this.#node = node
    this.#step = step
  }

  async outcome(past: Past | undefined): Promise<StepOutcome> {
    let attempt = past?.attempts ?? 0
    const open = past?.isStale === true ? undefined : past
    this.#failures = open?.failures ?? 0
    let pause = pauseOf(open)
    if (open?.last.t === 'again') await this.#pauseUntil(open.last.due)
    let isInterrupted = wasRunning(open)
    for (;;) {
      try {
        if (isInterrupted && !this.#mayRepeat(open!)) throw interrupted(this.#node.name)
        if (!pause) attempt += 1
        return await this.#once({ attempt, pause, isInterrupted })
      } catch (error) {
        const outcome = await this.#failed(error)
        if (outcome) return outcome
      }
      pause = undefined
      isInterrupted = false
    }
  }

  async #once(how: Try): Promise<StepOutcome> {
    const { output, branch } = await runNode(this.#run, this.#frame, this.#node, this.#step, how)
    const done = { t: 'done', s: this.#step, at: Date.now(), out: output, ...(branch === undefined ? {} : { branch }) } as const
    const spent = this.#run.takeSpent(this.#step)
    this.#run.journal.add(spent ? { ...done, spent } : done)
    return this.#run.kept(this.#frame, this.#node, done)
  }

  /** Whether it is tried again: then it has waited for that. */
  async #failed(thrown: unknown): Promise<StepOutcome | undefined> {
    const { signal } = this.#frame
    if (thrown instanceof Stopped) throw thrown
    signal.throwIfAborted()
    const [s, at, error] = [this.#step, Date.now(), this.#run.masked(toPublicError(thrown))]
    const spent = this.#run.takeSpent(s)
    const due = this.#dueAfter(error, at)
    const entry = { s, at, error, ...(spent ? { spent } : {}) }
    if (due === undefined) {
      this.#run.journal.add({ t: 'failed', ...entry, ...(this.#node.catch === undefined ? {} : { caught: true }) })
      return caught(this.#node, error)
    }
    this.#failures += 1
    this.#run.journal.add({ t: 'again', due, ...entry })
    await this.#run.journal.stored()
    await this.#pauseUntil(due)
    return undefined
  }

  #dueAfter({ code }: PublicError, now: number): number | undefined {
    const { retry } = this.#node
    if (!retry || this.#failures + 1 >= retry.attempts) return undefined
    if (retry.on ? !retry.on.includes(code) : HOPELESS.has(code)) return undefined
    return now + delayOf(retry, this.#failures)
  }

  async #pauseUntil(until: number): Promise<void> {
    if (until > Date.now())
      await this.#run.sleep({ step: this.#step, node: this.#node.name, since: Date.now(), until }, this.#frame.signal)
    this.#run.goesOn()
  }

  /** It was running when its process ended. */
  #mayRepeat({ attempts, failures }: Past): boolean {
    return this.#run.repeatable(this.#node) !== false && attempts - failures <= MOST_INTERRUPTIONS
  }
}

const wasRunning = (past: Past | undefined) => past?.last.t === 'begun' || past?.last.t === 'called'

/** A wait or fork that this try has come to. */
const pauseOf = (past: Past | undefined): Pause | undefined =>
  past?.pause && past.last.t !== 'again' && past.last.t !== 'begun' ? { at: past.pause, woken: past.woken } : undefined

/** Exponential, with the last half of it by chance: so that runs that failed together do not try together. */
const delayOf = ({ delayMs, factor, maxDelayMs }: Retry, failures: number) =>
  Math.min(maxDelayMs, delayMs * factor ** failures) * (0.5 + Math.random() / 2)
