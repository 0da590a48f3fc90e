import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { type Store, type StoreOp, type WorkflowDefinition, type WorkflowNode, Workflows } from '@svc/core/contracts'
import { openWorkflowHost, type EndedRun, workflowContext } from './workflow-host.ts'
import { INNER, TWELVE, UNDOES } from './workflow-twelve.ts'

/**
 * A process that is killed in the midst of many runs at once, each at a write of its own, or that goes on with what such a one has left.
 * Arguments: what it does, the store, the file of effects, the server that was killed before.
 */
const [task = '', db = '', effects = '', dead] = process.argv.slice(2)
const ctx = workflowContext()
const definitions = [INNER, TWELVE, UNDOES]
const REQUESTS = [{ workflow: 'twelve', input: { list: [1, 2, 3] } }, { workflow: 'undoes' }]

/** The run that an operation is about. */
const runOf = (op: StoreOp) => ('key' in op ? op.key : 'id' in op ? op.id : '').split('/', 1)[0]!

/** Where a run is to stop for ever: at its nth write from its first entry on, before it or after it. */
interface Stop {
  readonly at: number
  readonly isAfter: boolean
  readonly reached: () => void
}

/** Counts the writes of each run, and holds up those that a plan names. */
class Writes {
  readonly counts = new Map<string, number>()
  readonly #plans: Stop[] = []
  readonly #stops = new Map<string, Stop>()

  /** The run that begins next stops there; answers when it does. */
  plan(at: number, isAfter: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#plans.push({ at, isAfter, reached: resolve })
    return promise
  }

  wrap(store: Store): Store {
    return { ...store, batch: (ops, options, item) => this.#batch(ops, () => store.batch(ops, options, item)) }
  }

  async #batch<T>(ops: readonly StoreOp[], write: () => Promise<T>): Promise<T> {
    const run = runOf(ops.at(-1)!)
    if (ops.some(op => op.op === 'append') && !this.counts.has(run)) this.#begin(run)
    const count = this.counts.get(run)
    if (count === undefined) return write()
    this.counts.set(run, count + 1)
    const stop = this.#stops.get(run)
    if (!stop || count < stop.at) return write()
    if (count === stop.at && stop.isAfter) await write()
    stop.reached()
    return new Promise<never>(() => {})
  }

  #begin(run: string): void {
    this.counts.set(run, 0)
    const stop = this.#plans.shift()
    if (stop) this.#stops.set(run, stop)
  }
}

/** Answers what runs ask, until they have ended. */
async function settled(service: Workflows, id: string): Promise<EndedRun> {
  for (;;) {
    const run = await service.settled(id, 20, ctx)
    if (run.status !== 'running')
      return { id, workflow: run.workflow, status: run.status, result: run.result, ...(run.error ? { error: run.error } : {}) }
    const [asked] = run.waiting
    // two lives of this process may answer one question
    if (asked?.ask) await service.answer(id, { step: asked.step, value: true }, ctx).catch(() => {})
  }
}

const runs = async (service: Workflows) => (await service.runs({ limit: 200 }, ctx)).runs

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  async crash() {
    const writes = new Writes()
    const host = await openWorkflowHost({ db, effects, serverId: 'killed', definitions, wrap: store => writes.wrap(store) })
    const service = host.service(Workflows)
    const reported: Record<string, number> = {}
    for (const request of REQUESTS) {
      const whole = await service.start(request, ctx)
      await settled(service, whole.id)
      const most = writes.counts.get(whole.id)!
      const stops = Array.from({ length: 2 * most }, (_, at) => writes.plan(at >> 1, at % 2 === 1))
      // the order of writes beside each other differs: a run with fewer of them ends
      await Promise.all(
        stops.map(async stop => Promise.race([stop, service.start(request, ctx).then(({ id }) => settled(service, id))]))
      )
      reported[request.workflow] = most
    }
    say(reported)
    process.kill(process.pid, 'SIGKILL')
  },
  /** Replays a failed run again and again, and is killed while each replay stops at a write of its own. */
  async replay() {
    const writes = new Writes()
    const host = await openWorkflowHost({ db, effects, serverId: 'killed', definitions, wrap: store => writes.wrap(store) })
    const service = host.service(Workflows)
    const original = await settled(service, (await service.start({ workflow: REPLAYED, input: { fails: true } }, ctx)).id)
    const request = { from: 'two', input: { fails: false } }
    const whole = await service.replay(original.id, request, ctx)
    await settled(service, whole.id)
    const most = writes.counts.get(whole.id)!
    // one after the other: each replay also writes the record of the run that it continues
    for (let at = 0; at < 2 * most; at++) {
      const stop = writes.plan(at >> 1, at % 2 === 1)
      await Promise.race([stop, service.replay(original.id, request, ctx).then(({ id }) => settled(service, id))])
    }
    say({ original: original.id, most })
    process.kill(process.pid, 'SIGKILL')
  },
  /** Pauses a waiting run, or resumes a paused one, and is killed before its nth write from then on. */
  async pause() {
    const killing = new Killing()
    const host = await openWorkflowHost({ db, effects, serverId: 'killed', definitions, wrap: store => killing.wrap(store) })
    const service = host.service(Workflows)
    const { id } = await service.start({ workflow: ASKED }, ctx)
    while ((await service.get(id, ctx)).waiting.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    say({ id })
    const [what = '', count = ''] = (dead ?? '').split(':')
    if (what === 'resume') await service.pause(id, ctx)
    killing.after(Number(count))
    await (what === 'resume' ? service.resume(id, ctx) : service.pause(id, ctx))
    // the rest of its writes
    await new Promise(resolve => setTimeout(resolve, 2_000))
    process.kill(process.pid, 'SIGKILL')
  },
  /** Begins a run that continues as new, sends it an event for the last one, and is killed before its nth write from then on. */
  async chain() {
    const killing = new Killing()
    const host = await openWorkflowHost({ db, effects, serverId: 'killed', definitions, wrap: store => killing.wrap(store) })
    const service = host.service(Workflows)
    const { id } = await service.start({ workflow: CHAIN, input: { n: 0 } }, ctx)
    while ((await service.get(id, ctx)).waiting.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    await service.signal(id, { name: 'extra', data: 'kept' }, ctx)
    say({ id })
    killing.after(Number(dead))
    await service.signal(id, { name: 'go', data: null }, ctx).catch(() => {})
    await new Promise(resolve => setTimeout(resolve, 2_000))
    process.kill(process.pid, 'SIGKILL')
  },
  /** Cancels many runs in a job, and is killed in the midst of it. */
  async bulk() {
    const killing = new Killing()
    const more = ['jobs']
    const host = await openWorkflowHost({
      db,
      effects,
      serverId: 'killed',
      definitions,
      more,
      wrap: store => killing.wrap(store),
    })
    const service = host.service(Workflows)
    const starts = Array.from({ length: 500 }, () => service.start({ workflow: ASKED, detached: true }, ctx))
    await Promise.all(starts)
    const { job } = await service.bulk({ action: 'cancel', filter: { workflow: 'asked' } }, ctx)
    say({ job })
    killing.after(Number(dead))
    await new Promise(() => {})
  },
  /** Begins a run whose second node ends only when a line comes in, tells when it has begun, and how it fared. */
  async hold() {
    const nodes = { hold: holding() }
    const host = await openWorkflowHost({ db, effects, serverId: 'killed', definitions, nodes })
    const service = host.service(Workflows)
    const { id } = await service.start({ workflow: holds(dead === 'repeatable') }, ctx)
    await once(process.stdin, 'data')
    await host.close()
    say(await settled(await openAgain(), id))
  },
  async go() {
    const nodes = { hold: quick }
    const host = await openWorkflowHost({
      db,
      effects,
      serverId: 'next',
      ...(dead ? { dead: 'killed' } : {}),
      definitions,
      nodes,
    })
    const service = host.service(Workflows)
    const all = await runs(service)
    const reported = await Promise.all(all.map(({ id }) => settled(service, id)))
    const links = all.map(({ id, replayOf, continuedBy }) => ({ id, replayOf, continuedBy }))
    await host.close()
    say(dead === 'linked' ? { reported, links } : reported)
  },
}

/** The same store, read by one who takes no part in the run that it has lost. */
const openAgain = async () => (await openWorkflowHost({ db, effects, serverId: 'reader', definitions })).service(Workflows)

const ASKED: WorkflowDefinition = {
  name: 'asked',
  nodes: { one: { type: 'effect', next: 'q' }, q: { type: 'human', message: '?', next: 'two' }, two: { type: 'effect' } },
}

/** Three runs: the first waits for `go`, the last for an event that the first has got. */
const CHAIN: WorkflowDefinition = {
  name: 'chain',
  inputs: { type: 'object', properties: { n: { type: 'integer' } } },
  nodes: {
    first: { type: 'condition', if: 'input.n == 0', branches: { true: 'go', false: 'one' } },
    go: { type: 'wait', event: 'go', next: 'one' },
    one: { type: 'effect', next: 'more' },
    more: { type: 'condition', if: 'input.n < 2', branches: { true: 'again', false: 'extra' } },
    again: { type: 'continue_as_new', input: { n: '${{ input.n + 1 }}' } },
    extra: { type: 'wait', event: 'extra', next: 'done' },
    done: { type: 'effect' },
  },
  result: '${{ nodes.extra.data }}',
}

/** Kills this process before one of its writes. */
class Killing {
  #left = Number.POSITIVE_INFINITY

  after(count: number): void {
    this.#left = count
  }

  wrap(store: Store): Store {
    return {
      ...store,
      batch: (ops, options, item) => {
        if (this.#left-- <= 0) process.kill(process.pid, 'SIGKILL')
        return store.batch(ops, options, item)
      },
    }
  }
}

const REPLAYED: WorkflowDefinition = {
  name: 'replayed',
  inputs: { type: 'object', properties: { fails: { type: 'boolean' } } },
  nodes: {
    one: { type: 'effect', next: 'two' },
    two: { type: 'effect', next: 'three' },
    three: { type: 'effect', fails: '${{ input.fails }}', next: 'four' },
    four: { type: 'effect', value: 'done' },
  },
}

const holds = (repeatable: boolean): WorkflowDefinition => ({
  name: 'holds',
  nodes: { one: { type: 'effect', next: 'two' }, two: { type: 'hold', repeatable, next: 'three' }, three: { type: 'effect' } },
})

/** A node that has begun, and ends when it is told to. */
const holding = (): WorkflowNode => ({
  ...quick,
  async *run() {
    say({ begun: true })
    await once(process.stdin, 'data')
    yield { type: 'output', output: 'late' }
  },
})
const quick: WorkflowNode = {
  description: 'A node of a test.',
  settings: { type: 'object', additionalProperties: false },
  repeatable: false,
  async *run() {
    yield { type: 'output', output: 'second' }
  },
}

const say = (reported: unknown) => writeSync(1, `${JSON.stringify(reported)}\n`)

await tasks[task]!()
process.exit()
