import { within } from '@svc/core'
import type { ChildOutcome, Json, NodeStep, NodeTask, WorkflowNode } from '@svc/core/contracts'
import type { CompiledNode } from './compiled.ts'
import type { EntryOf } from './entries.ts'
import { nodeBroke, nodeLate, nodeTypeMissing } from './errors.ts'
import type { Execution } from './execution.ts'
import { runChildren } from './fork.ts'
import type { Frame } from './frame.ts'

/** A fork or wait that a node has come to, and what ended it. */
export interface Pause {
  readonly at: EntryOf<'forked'> | EntryOf<'asleep'>
  readonly woken: EntryOf<'woken'> | undefined
}

type LastWord = Extract<NodeStep, { readonly type: 'output' | 'wait' | 'fork' }>
type Output = Extract<NodeStep, { readonly type: 'output' }>
/** What a node is called again with. */
type Back = Pick<NodeTask, 'state' | 'children' | 'woken'>

/** One try of a node: called until it answers, with the forks and waits between. Goes on from `pause` where it was before. */
export async function runNode(
  run: Execution,
  frame: Frame,
  node: CompiledNode,
  step: string,
  attempt: number,
  pause: Pause | undefined
): Promise<Output> {
  const type = run.types.get(node.type)
  if (!type) throw nodeTypeMissing(node.name, node.type)
  const call = new Call(run, frame, node, type, step, attempt)
  let back = pause ? await call.resumed(pause) : await call.begin()
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

  constructor(run: Execution, frame: Frame, node: CompiledNode, type: WorkflowNode, step: string, attempt: number) {
    this.#run = run
    this.#frame = frame
    this.#node = node
    this.#type = type
    this.#step = step
    this.#attempt = attempt
  }

  /** That it begins is stored before it does, together with what came of the step before. */
  async begin(): Promise<Back> {
    const { type } = this.#node
    const input = this.#run.shown(this.#node, this.#frame)
    this.#run.journal.add({ t: 'begun', s: this.#step, at: Date.now(), n: this.#attempt, type, input })
    await this.#run.journal.stored()
    return {}
  }

  pausedBy(word: Exclude<LastWord, Output>): Pause['at'] {
    const about = { s: this.#step, at: Date.now(), ...(word.state === undefined ? {} : { state: word.state }) }
    const { type: _type, state: _state, ...rest } = word
    const entry = (word.type === 'wait' ? { t: 'asleep', ...about, ...rest } : { t: 'forked', ...about, ...rest }) as Pause['at']
    this.#run.journal.add(entry)
    return entry
  }

  /** Waits for what it paused for; answers what it is called again with. */
  async resumed({ at, woken }: Pause): Promise<Back> {
    const state = at.state === undefined ? {} : { state: at.state }
    const back: Back = at.t === 'forked' ? { ...state, children: await this.#children(at) } : { ...state, woken: await this.#woken(at, woken) }
    if (!this.#run.isRepeatable(this.#node)) this.#run.journal.add({ t: 'called', s: this.#step, at: Date.now() })
    await this.#run.journal.stored()
    return back
  }

  #children(fork: EntryOf<'forked'>): Promise<Readonly<Record<string, ChildOutcome>>> {
    return runChildren(this.#run, this.#frame, this.#node, this.#step, fork)
  }

  async #woken(sleep: EntryOf<'asleep'>, entry: EntryOf<'woken'> | undefined): Promise<NonNullable<Back['woken']>> {
    if (entry) return entry.by === 'time' ? { by: 'time' } : { by: entry.by, data: entry.data ?? null }
    await this.#run.journal.stored()
    const { until, event, ask } = sleep
    const about = { step: this.#step, node: this.#node.name, since: sleep.at }
    const what = { ...(until === undefined ? {} : { until }), ...(event === undefined ? {} : { event }), ...(ask === undefined ? {} : { ask }) }
    const woken = await this.#run.sleep({ ...about, ...what }, this.#frame.signal)
    this.#run.journal.add({ t: 'woken', s: this.#step, at: Date.now(), ...woken })
    return woken
  }

  /** Calls it once, up to its last word. */
  async once(back: Back): Promise<LastWord> {
    const { signal } = this.#frame
    const ms = this.#node.timeoutMs ?? this.#run.limits.nodeTimeoutMs
    const task: NodeTask = { ...this.#about(), settings: this.#settings(back), ...back }
    const work = (ending: AbortSignal) => this.#lastWord(task, ending)
    return within(ms, work, { signal, late: () => nodeLate(this.#node.name, ms) })
  }

  #about(): Omit<NodeTask, 'settings'> {
    const run = this.#run
    return {
      run: { id: run.id, workflow: run.workflow },
      step: this.#step,
      node: this.#node.name,
      attempt: this.#attempt,
      idempotencyKey: `${run.root}:${this.#step}`,
      bodies: Object.keys(this.#node.bodies),
      allowance: this.#frame.ledger.allowance,
    }
  }

  #settings(back: Back): NodeTask['settings'] {
    const { scope } = this.#frame
    const early = this.#run.evaluate(this.#node.settings, scope) as NodeTask['settings']
    const { late } = this.#node
    if (!late || !back.children) return early
    return { ...early, ...(this.#run.evaluate(late, { ...scope, ...resultsOf(back.children) }) as NodeTask['settings']) }
  }

  async #lastWord(task: NodeTask, signal: AbortSignal): Promise<LastWord> {
    for await (const word of this.#type.run(task, { ...this.#run.use, signal })) {
      if (word.type === 'spent') this.#run.spend(this.#step, this.#frame, word)
      else if (word.type === 'progress') this.#run.progress(this.#step, this.#node.name, word)
      else return word
    }
    throw nodeBroke(this.#node.name, 'it ended without a last word')
  }

  checked(word: Output): Output {
    this.#run.checkSize(this.#node.name, word.output)
    return { ...word, output: this.#run.masked(word.output ?? null) }
  }
}

/** What late expressions can name: `last` is the output of the child that was begun last, `results` are all of them. */
function resultsOf(children: Readonly<Record<string, ChildOutcome>>): Record<string, Json> {
  const outputs = Object.values(children).map(one => (one.status === 'completed' ? one.output : null))
  return { results: outputs, last: outputs.at(-1) ?? null }
}
