import type { ChildOutcome, Json } from '@svc/core/contracts'
import type { Scope } from '@svc/workflow'
import type { CompiledGraph, CompiledNode } from './compiled.ts'
import type { EntryOf, Fork, ForkedChild } from './entries.ts'
import { nodeBroke } from './errors.ts'
import type { Execution } from './execution.ts'
import { Dropped, errorOf, type Frame, newFrame, Stopped } from './frame.ts'
import { walk } from './walk.ts'

/** Runs the children of a step, so many at a time; those that the log has are not run again. In the order of the fork. */
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

class Children {
  readonly #run: Execution
  readonly #frame: Frame
  readonly #node: CompiledNode
  readonly #step: string
  readonly #fork: Fork
  readonly #ending = new AbortController()
  readonly #waiting: ForkedChild[]
  #isEnough = false

  constructor(run: Execution, frame: Frame, node: CompiledNode, step: string, fork: Fork) {
    this.#run = run
    this.#frame = frame
    this.#node = node
    this.#step = step
    this.#fork = fork
    this.#waiting = fork.children.filter(({ key }) => !run.history.frames.has(this.#path(key)))
  }

  async run(): Promise<void> {
    for (const { key } of this.#fork.children) this.#weigh(this.#outcome(key))
    const end = () => this.#ending.abort(this.#frame.signal.reason)
    this.#frame.signal.addEventListener('abort', end, { once: true })
    try {
      const width = Math.min(this.#fork.width ?? Number.POSITIVE_INFINITY, this.#waiting.length)
      const lanes = await Promise.allSettled(Array.from({ length: width }, () => this.#lane()))
      this.#frame.signal.throwIfAborted()
      for (const lane of lanes) if (lane.status === 'rejected') throw lane.reason
    } finally {
      this.#frame.signal.removeEventListener('abort', end)
    }
  }

  outcomes(): Record<string, ChildOutcome> {
    return Object.fromEntries(this.#fork.children.map(({ key }) => [key, this.#outcome(key) ?? { status: 'cancelled' }]))
  }

  #path(key: string): string {
    return `${this.#step}/${key}/`
  }
  #outcome(key: string): ChildOutcome | undefined {
    return this.#run.history.frames.get(this.#path(key))
  }

  /** One child after the other. What stops the run stops the others too. */
  async #lane(): Promise<void> {
    for (let child = this.#next(); child; child = this.#next()) {
      try {
        await this.#run.work(() => this.#one(child!))
      } catch (error) {
        this.#isEnough = true
        this.#ending.abort(error)
        throw error
      }
      this.#weigh(this.#outcome(child.key))
    }
  }

  #next(): ForkedChild | undefined {
    return this.#isEnough ? undefined : this.#waiting.shift()
  }

  /** Whether the others are needed still. */
  #weigh(outcome: ChildOutcome | undefined): void {
    const { join, failFast } = this.#fork
    const ends =
      (outcome?.status === 'completed' && join !== 'all') ||
      (outcome?.status === 'failed' && (join === 'first' || failFast === true))
    if (!ends || this.#isEnough) return
    this.#isEnough = true
    this.#ending.abort(new Dropped())
  }

  async #one({ key, body, vars }: ForkedChild): Promise<void> {
    const path = this.#path(key)
    const lanes = Math.min(this.#fork.width ?? Number.POSITIVE_INFINITY, this.#waiting.length + 1)
    const share = this.#frame.ledger.share(lanes)
    try {
      const graph = await this.#graphOf(body)
      const scope = { ...graph.vars, ...vars }
      const child = newFrame({ path, ...graph, vars: scope, ledger: share.ledger, signal: this.#ending.signal })
      const out = await walk(this.#run, child)
      await graph.check?.(out)
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
    else this.#run.journal.add({ t: 'broken', f: path, at: Date.now(), error: errorOf(error) })
  }

  /** A body sees what its node sees; a workflow only its input. */
  async #graphOf(body: ForkedChild['body']): Promise<{ graph: CompiledGraph; vars: Scope; nodes?: Readonly<Record<string, Json>>; check?: (out: Json) => Promise<void> }> {
    if (typeof body === 'object' && 'workflow' in body && !('nodes' in body)) {
      const { workflow, input, parameters } = body as { workflow: string; input: Json; parameters?: Json }
      return this.#run.within(workflow, input, parameters)
    }
    const { nodes, error: _error, ...vars } = this.#frame.scope
    const graph = typeof body === 'string' ? this.#node.bodies[body] : this.#run.compiled(body as never)
    if (!graph) throw this.#run.failed(nodeBroke(this.#node.name, `it has no body "${String(body).slice(0, 60)}"`))
    return { graph, vars, nodes }
  }
}
