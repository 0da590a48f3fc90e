import type { ChildOutcome, Json, NodeStep, NodeTask, PublicError, WorkflowNode } from '@svc/core/contracts'
import type { CompiledNode, Retry } from './compiled.ts'
import { HOPELESS, interrupted, nodeBroke, nodeLate, nodeTypeMissing, toPublicError } from './errors.ts'
import type { Execution } from './execution.ts'
import { recallChildren, runChildren } from './fork.ts'
import { type Frame, StepFailed, Stopped } from './frame.ts'
import type { EntryOf, Past } from './history.ts'

/** The outcome of a step: its output, or an error that the node catches. */
export type StepOutcome = { readonly output: Json; readonly branch?: string } | { readonly error: PublicError }

/** Runs a node once, with its retries. Throws StepFailed if it fails and does not catch the error. */
export async function doStep(run: Execution, frame: Frame, node: CompiledNode, step: string): Promise<StepOutcome> {
  const past = run.history.steps.get(step)
  if (past) {
    frame.ledger.spend(past.spent)
    if (past.forks.length > 0) await recallChildren(run, frame, node, step, past)
    if (past.last.t === 'done') return run.kept(frame, node, past.last)
    if (past.last.t === 'failed' && !past.isStale) return caught(node, past.last.error)
  }
  if (frame.isPast) throw new Stopped('the step was not done, and the frame has ended')
  frame.signal.throwIfAborted()
  run.goesOn()
  if (!past) run.countStep()
  return await new Tries(run, frame, node, step).outcome(past)
}

function caught(node: CompiledNode, error: PublicError): StepOutcome {
  if (node.catch === undefined) throw new StepFailed(error)
  return { error }
}

/**
 * A node that was interrupted more often can be the cause of the crashes, so it is not run again. The supervisor exits after five
 * crashes in a row.
 */
const MOST_INTERRUPTIONS = 3

/** The attempts of a step. */
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

  /** Records a failure. Returns undefined after the delay if the step is retried. */
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

  /** Whether an interrupted node can run again. */
  #mayRepeat({ attempts, failures }: Past): boolean {
    return this.#run.repeatable(this.#node) !== false && attempts - failures <= MOST_INTERRUPTIONS
  }
}

const wasRunning = (past: Past | undefined) => past?.last.t === 'begun' || past?.last.t === 'called'

/** The wait or fork that this attempt has reached. */
const pauseOf = (past: Past | undefined): Pause | undefined =>
  past?.pause && past.last.t !== 'again' && past.last.t !== 'begun' ? { at: past.pause, woken: past.woken } : undefined

/** Exponential back-off. Half of it is random, so that runs that failed together do not retry together. */
const delayOf = ({ delayMs, factor, maxDelayMs }: Retry, failures: number) =>
  Math.min(maxDelayMs, delayMs * factor ** failures) * (0.5 + Math.random() / 2)

/** A fork or wait of a node, and its wake-up entry. */
interface Pause {
  readonly at: EntryOf<'forked'> | EntryOf<'asleep'>
  readonly woken: EntryOf<'woken'> | undefined
}

/** An attempt of a node: its number, the pause it continues after, and whether an earlier process was interrupted. */
interface Try {
  readonly attempt: number
  readonly pause: Pause | undefined
  readonly isInterrupted: boolean
}

type LastWord = Extract<NodeStep, { readonly type: 'output' | 'wait' | 'fork' }>
type Output = Extract<NodeStep, { readonly type: 'output' }>
/** Input of a repeated call. */
type Back = Pick<NodeTask, 'state' | 'children' | 'woken' | 'interrupted'>

/** Runs an attempt of a node: calls it until it returns an output, with its forks and waits in between. */
async function runNode(
  run: Execution,
  frame: Frame,
  node: CompiledNode,
  step: string,
  { attempt, pause, isInterrupted }: Try
): Promise<Output> {
  const type = run.types.get(node.type)
  if (!type) {
    // the step is in the log, so that a replay with the current definition can begin there
    if (!pause) run.journal.add({ t: 'begun', s: step, at: Date.now(), n: attempt, type: node.type, input: {} })
    throw nodeTypeMissing(node.name, node.type)
  }
  const call = new Call(run, frame, node, type, step, attempt)
  const begun = pause ? await call.resumed(pause) : await call.begin()
  let back: Back = isInterrupted && run.repeatable(node) === 'itself' ? { ...begun, interrupted: true } : begun
  for (;;) {
    const word = await call.once(back)
    if (word.type === 'output') return call.checked(word)
    back = await call.resumed({ at: call.pausedBy(word), woken: undefined })
  }
}

class Call {
  readonly #run: Execution
  readonly #frame: Frame
  readonly #node: CompiledNode
  readonly #type: WorkflowNode
  readonly #step: string
  readonly #attempt: number
  /** Whether an earlier process exited during a call. */
  #wasCut = false
  /** Settings that were already evaluated for the log. */
  #early: NodeTask['settings'] | undefined

  constructor(run: Execution, frame: Frame, node: CompiledNode, type: WorkflowNode, step: string, attempt: number) {
    this.#run = run
    this.#frame = frame
    this.#node = node
    this.#type = type
    this.#step = step
    this.#attempt = attempt
  }

  /**
   * Records the start before the first call, together with the results of the previous step. It is stored later if no result is
   * pending and the node can run again.
   */
  async begin(): Promise<Back> {
    const { type, settings } = this.#node
    this.#lookBack()
    const { early, input } = this.#run.shown(settings, this.#frame)
    this.#early = early
    this.#run.journal.add({ t: 'begun', s: this.#step, at: Date.now(), n: this.#attempt, type, input })
    if (this.#run.mayBeginUnstored(this.#node)) this.#run.journal.soon()
    else await this.#run.journal.stored()
    return {}
  }

  /** Finds out whether an earlier call was interrupted. */
  #lookBack(): void {
    const past = this.#run.history.steps.get(this.#step)
    this.#wasCut = past !== undefined && !past.isStale && (past.last.t === 'begun' || past.last.t === 'called')
  }

  pausedBy(word: Exclude<LastWord, Output>): Pause['at'] {
    const about = { s: this.#step, at: Date.now(), ...(word.state === undefined ? {} : { state: word.state }) }
    const { type: _type, state: _state, ...rest } = word
    const entry = this.#run.masked(
      word.type === 'wait' ? { t: 'asleep', ...about, ...rest } : { t: 'forked', ...about, ...rest }
    ) as Pause['at']
    this.#run.checkLarge(this.#node.name, entry as unknown as Json)
    this.#run.journal.add(entry)
    return entry
  }

  /** Waits for the end of a pause and returns the input of the next call. */
  async resumed({ at, woken }: Pause): Promise<Back> {
    const state = at.state === undefined ? {} : { state: at.state }
    this.#lookBack()
    const back: Back =
      at.t === 'forked' ? { ...state, children: await this.#children(at) } : { ...state, woken: await this.#woken(at, woken) }
    this.#run.goesOn()
    if (this.#run.repeatable(this.#node) !== true) this.#run.journal.add({ t: 'called', s: this.#step, at: Date.now() })
    if (at.t === 'forked' && this.#run.mayGoOnUnstored(this.#node)) this.#run.journal.soon()
    else await this.#run.journal.stored()
    return back
  }

  #children(fork: EntryOf<'forked'>): Promise<Readonly<Record<string, ChildOutcome>>> {
    return runChildren(this.#run, this.#frame, this.#node, this.#step, fork)
  }

  async #woken(sleep: EntryOf<'asleep'>, entry: EntryOf<'woken'> | undefined): Promise<NonNullable<Back['woken']>> {
    if (entry) return wokenBy(entry)
    await this.#run.journal.stored()
    const meanwhile = this.#run.history.steps.get(this.#step)?.woken
    if (meanwhile) return wokenBy(meanwhile)
    const { until, event, ask } = sleep
    const about = { step: this.#step, node: this.#node.name, since: sleep.at }
    const what = {
      ...(until === undefined ? {} : { until }),
      ...(event === undefined ? {} : { event }),
      ...(ask === undefined ? {} : { ask }),
    }
    const woken = await this.#run.sleep({ ...about, ...what }, this.#frame.signal)
    const { last } = this.#run.history.steps.get(this.#step)!
    if (last.t === 'asleep') this.#run.journal.add({ t: 'woken', s: this.#step, at: Date.now(), ...woken })
    return woken.by === 'time' ? { by: 'time' } : { by: woken.by, data: woken.data }
  }

  /** Calls the node once. */
  async once(back: Back): Promise<LastWord> {
    const { signal } = this.#frame
    const ms = this.#node.timeoutMs ?? this.#run.limits.nodeTimeoutMs
    const task: NodeTask = { ...this.#about(), settings: this.#settings(back), ...back }
    const work = (ending: AbortSignal) => this.#lastWord(task, ending)
    return this.#run.calls.withTimeout({ ms, signal, late: () => nodeLate(this.#node.name, ms) }, work)
  }

  #about(): Omit<NodeTask, 'settings'> {
    const run = this.#run
    return {
      run: { id: run.id, workflow: run.workflow },
      step: this.#step,
      node: this.#node.name,
      attempt: this.#attempt,
      idempotencyKey: `${run.root}:${this.#step}`,
      bodies: this.#node.bodyNames,
      branches: this.#node.branchNames,
      ...(this.#wasCut ? { interrupted: true } : {}),
      allowance: this.#frame.ledger.allowance,
    }
  }

  #settings(back: Back): NodeTask['settings'] {
    const { scope } = this.#frame
    const early = this.#early ?? (this.#run.evaluate(this.#node.settings, scope) as NodeTask['settings'])
    this.#early = undefined
    const { late } = this.#node
    if (!late || !back.children) return early
    return { ...early, ...(this.#run.evaluate(late, { ...scope, ...resultsOf(back.children) }) as NodeTask['settings']) }
  }

  async #lastWord(task: NodeTask, signal: AbortSignal): Promise<LastWord> {
    const { ctx } = this.#run
    const attributes = {
      'svc.run.id': this.#run.id,
      'svc.workflow.step': this.#step,
      'svc.workflow.node.type': this.#node.type,
      'svc.workflow.attempt': this.#attempt,
    }
    const span = this.#run.span(`step ${this.#node.name}`, { ...ctx, signal }, { attributes })
    try {
      for await (const word of this.#type.run(task, span.ctx)) {
        if (word.type === 'spent') this.#run.spend(this.#step, this.#frame, word)
        else if (word.type === 'workplace') this.#run.useWorkplace(this.#step)
        else if (word.type === 'progress') this.#run.progress(this.#step, this.#node.name, this.#run.masked(word))
        else return word
      }
      throw nodeBroke(this.#node.name, 'it ended without an output, a wait or a fork')
    } catch (error) {
      span.fail(error)
      throw error
    } finally {
      span.end()
    }
  }

  checked(word: Output): Output {
    this.#run.checkSize(this.#node.name, word.output)
    return { ...word, output: this.#run.masked(word.output ?? null) }
  }
}

const wokenBy = ({ by, data }: EntryOf<'woken'>): NonNullable<Back['woken']> =>
  by === 'time' ? { by } : { by, data: data ?? null }

/** Variables of late expressions: `last` is the output of the child that started last, `results` the outputs of all children. */
function resultsOf(children: Readonly<Record<string, ChildOutcome>>): Record<string, Json> {
  const outputs = Object.values(children).map(child => (child.status === 'completed' ? child.output : null))
  return { results: outputs, last: outputs.at(-1) ?? null }
}
