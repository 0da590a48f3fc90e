import type { ChildOutcome, Json } from '@svc/core/contracts'
import type { CompiledNode } from './compiled.ts'
import { type EntryOf, type Fork, type ForkedChild, type Past, workedMs } from './history.ts'
import { nodeBroke, nodeLate } from './errors.ts'
import type { Execution, Inner } from './execution.ts'
import { Dropped, errorOf, type Frame, newFrame, Stopped } from './frame.ts'

/** Runs the children of a step with limited concurrency, and returns their outcomes in order. Children in the log are not run again. */
export async function runChildren(
  run: Execution,
  frame: Frame,
  node: CompiledNode,
  step: string,
  fork: EntryOf<'forked'>
): Promise<Record<string, ChildOutcome>> {
  const children = new Children(run, frame, node, step, fork)
  await run.idle(() => children.run())
  return children.outcomes()
}

/** Walks completed children again to find what they spent and what can be compensated. */
export async function recallChildren(
  run: Execution,
  frame: Frame,
  node: CompiledNode,
  step: string,
  { forks }: Past
): Promise<void> {
  if (!run.hasUndo && frame.ledger.isEndless) return
  const children = new Map(forks.flatMap(fork => fork.children).map(child => [`${step}/${child.key}/`, child]))
  for (const [path, child] of children) {
    if (!run.history.frames.has(path)) continue
    const graph = await graphOf(run, frame, node, child).catch(() => undefined)
    if (!graph) continue
    const past = newFrame({
      path,
      ...graph,
      vars: { ...graph.vars, ...child.vars },
      ledger: frame.ledger,
      signal: frame.signal,
      isPast: true,
    })
    // it ends where it ended before
    await run.walkGraph(past).catch(() => {})
  }
}

/** The graph of a child. A body sees the variables of its node, a workflow only its input. */
async function graphOf(
  run: Execution,
  frame: Frame,
  node: CompiledNode,
  { body }: ForkedChild
): Promise<Inner & { readonly nodes?: Readonly<Record<string, Json>> }> {
  if (typeof body === 'object' && 'workflow' in body && !('nodes' in body)) {
    const { workflow, input, parameters } = body as { workflow: string; input: Json; parameters?: Json }
    return run.within(workflow, input, parameters)
  }
  const { nodes, error: _error, ...vars } = frame.scope
  const graph = typeof body === 'string' ? node.bodies[body] : run.compiled(body as never)
  if (!graph)
    throw run.failed(nodeBroke(node.name, `it has no body "${typeof body === 'string' ? body.slice(0, 60) : '(its own)'}"`))
  return { graph, vars, nodes }
}

/** The longest delay of a Node timer. */
const LONGEST_MS = 2 ** 31 - 1

class Children {
  readonly #run: Execution
  readonly #frame: Frame
  readonly #node: CompiledNode
  readonly #step: string
  readonly #fork: Fork
  readonly #ending = new AbortController()
  readonly #waiting: ForkedChild[]
  #isEnough = false
  #isLate = false

  constructor(run: Execution, frame: Frame, node: CompiledNode, step: string, fork: Fork) {
    this.#run = run
    this.#frame = frame
    this.#node = node
    this.#step = step
    this.#fork = fork
    this.#waiting = fork.children.filter(({ key }) => !run.history.frames.has(this.#path(key)))
  }

  get #width(): number {
    return Math.max(1, this.#fork.width ?? Number.POSITIVE_INFINITY)
  }

  async run(): Promise<void> {
    for (const { key } of this.#fork.children) this.#weigh(this.#outcome(key))
    const end = () => this.#ending.abort(this.#frame.signal.reason)
    this.#frame.signal.throwIfAborted()
    this.#frame.signal.addEventListener('abort', end, { once: true })
    const timer = this.#setTimer()
    try {
      const width = this.#isEnough ? 0 : Math.min(this.#width, this.#waiting.length)
      const lanes = await Promise.allSettled(Array.from({ length: width }, () => this.#lane()))
      this.#frame.signal.throwIfAborted()
      if (this.#isLate) throw this.#ending.signal.reason
      for (const lane of lanes) if (lane.status === 'rejected') throw lane.reason
    } finally {
      clearTimeout(timer)
      this.#frame.signal.removeEventListener('abort', end)
    }
  }

  /** The time limit of an attempt covers its children. It stops while the run sleeps. */
  #setTimer(): NodeJS.Timeout | undefined {
    const { name, timeoutMs } = this.#node
    if (timeoutMs === undefined) return undefined
    const { history } = this.#run
    const left = timeoutMs - (workedMs(history, Date.now()) - history.steps.get(this.#step)!.since)
    const end = () => {
      ;[this.#isLate, this.#isEnough] = [true, true]
      this.#ending.abort(nodeLate(name, timeoutMs))
    }
    if (left > 0) return setTimeout(end, Math.min(left, LONGEST_MS))
    end()
    return undefined
  }

  outcomes(): Record<string, ChildOutcome> {
    return Object.fromEntries(this.#fork.children.map(({ key }) => [key, this.#withUsage(key)]))
  }

  #withUsage(key: string): ChildOutcome {
    const outcome = this.#outcome(key) ?? { status: 'cancelled' }
    const used = this.#run.history.used.get(this.#path(key))
    if (!used) return outcome
    const { calls, tokens, cost } = used
    return { ...outcome, usage: { tokens, tool_calls: calls, ...(cost === undefined ? {} : { cost }) } }
  }

  #path(key: string): string {
    return `${this.#step}/${key}/`
  }
  #outcome(key: string): ChildOutcome | undefined {
    return this.#run.history.frames.get(this.#path(key))
  }

  /** Runs children one after the other. If the run stops, parallel children finish first. Other engine errors abort them. */
  async #lane(): Promise<void> {
    for (let child = this.#next(); child; child = this.#next()) {
      try {
        await this.#run.work(() => this.#one(child!))
      } catch (error) {
        this.#isEnough = true
        if (!(error instanceof Stopped)) this.#ending.abort(error)
        throw error
      }
      this.#weigh(this.#outcome(child.key))
    }
  }

  #next(): ForkedChild | undefined {
    return this.#isEnough ? undefined : this.#waiting.shift()
  }

  /** Ends the other children if the outcome decides the fork. */
  #weigh(outcome: ChildOutcome | undefined): void {
    const { join, failFast } = this.#fork
    const ends =
      (outcome?.status === 'completed' && join !== 'all') ||
      (outcome?.status === 'failed' && (join === 'first' || failFast === true))
    if (!ends || this.#isEnough) return
    this.#isEnough = true
    this.#ending.abort(new Dropped())
  }

  async #one(forked: ForkedChild): Promise<void> {
    const path = this.#path(forked.key)
    const share = this.#frame.ledger.share(Math.min(this.#width, this.#waiting.length + 1))
    try {
      const graph = await graphOf(this.#run, this.#frame, this.#node, forked)
      const vars = { ...graph.vars, ...forked.vars }
      const child = newFrame({ path, ...graph, vars, ledger: share.ledger, signal: this.#ending.signal })
      const walked = await this.#run.walkGraph(child)
      const out = this.#run.masked(graph.check ? await graph.check(walked) : walked)
      this.#run.checkLarge(this.#node.name, out)
      this.#run.journal.add({ t: 'ended', f: path, at: Date.now(), out })
    } catch (error) {
      this.#failed(path, error)
    } finally {
      share.close()
    }
  }

  #failed(path: string, error: unknown): void {
    if (error instanceof Stopped || this.#frame.signal.aborted) throw error
    if (this.#ending.signal.reason instanceof Dropped) this.#run.journal.add({ t: 'dropped', f: path, at: Date.now() })
    else this.#run.journal.add({ t: 'broken', f: path, at: Date.now(), error: this.#run.masked(errorOf(error)) })
  }
}
