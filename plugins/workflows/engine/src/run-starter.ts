import { createHash } from 'node:crypto'
import { type CallContext, codeOf } from '@svc/core'
import type {
  Json,
  RetryRequest,
  Run,
  RunClaim,
  RunQueue,
  RunRequest,
  Store,
  StoreOp,
  WorkflowDefinition,
} from '@svc/core/contracts'
import { timelyId } from '@svc/storage-kit'
import { type Definitions, TOUCH_MS } from './definitions.ts'
import { invalid } from './errors.ts'
import { type Entry, type EntryOf, framesOf, historyOf, isOver, UNDO } from './history.ts'
import { InitialCommit } from './initial-commit.ts'
import { digestOf, type WorkflowLibrary } from './library.ts'
import type { Loader } from './loader.ts'
import type { RunReader } from './run-reader.ts'
import { KEYS, LOG, type RunRecord, RUNS } from './space.ts'
import { checkInput, withDefaults } from './values.ts'
import { runOf } from './views.ts'
import type { RunWorker } from './worker.ts'

export interface RunStarterOptions {
  /** Called for each new run. */
  readonly started: (run: Run, ctx: CallContext) => void
  readonly store: Store
  readonly queue: RunQueue
  readonly library: WorkflowLibrary
  readonly definitions: Definitions
  readonly loader: Loader
  readonly reading: RunReader
  readonly worker: RunWorker
}

/** The store key of an idempotency key, the version of its record, and the digest of its request. */
interface KeyPlace {
  readonly key: string
  readonly version: number
  readonly asked: string
}

/** Everything that is needed to start a run. */
interface Beginning {
  readonly record: RunRecord
  readonly definitions: Iterable<WorkflowDefinition>
  readonly entries: readonly Entry[]
  readonly key?: KeyPlace
  readonly isDetached: boolean
}

/** How long an idempotency key is valid. */
const KEY_MS = TOUCH_MS

/** Starts and retries runs. */
export class RunStarter {
  readonly #parts: RunStarterOptions

  constructor(parts: RunStarterOptions) {
    this.#parts = parts
  }

  async start({ workflow, input = {}, parameters = {}, idempotencyKey, detached }: RunRequest, ctx: CallContext): Promise<Run> {
    const { library } = this.#parts
    const key = await this.#asked(idempotencyKey, [workflow, input, parameters], ctx)
    if (key?.run !== undefined) return this.#parts.reading.get(key.run, ctx)
    const { definition } = typeof workflow === 'string' ? await library.ready(workflow) : await library.made(workflow)
    const given = structuredClone(input)
    await checkInput(definition, given)
    const values = await withDefaults(definition, structuredClone(parameters))
    const definitions = await this.#parts.definitions.within(definition)
    for (const item of definitions.values()) await this.#parts.loader.secretsOf(item)
    const record = newRecord(definition, definitions, given, values, ctx)
    return this.#begin(
      { record, definitions: definitions.values(), entries: [], ...(key ? { key } : {}), isDetached: detached === true },
      ctx
    )
  }

  /** Starts a run that continues a failed or cancelled run. */
  async retry(id: string, { idempotencyKey, detached }: RetryRequest, ctx: CallContext): Promise<Run> {
    const { reading, loader } = this.#parts
    const key = await this.#asked(idempotencyKey, ['retry', id], ctx)
    if (key?.run !== undefined) return reading.get(key.run, ctx)
    const before = await reading.record(id, ctx)
    if (before.status !== 'failed')
      throw invalid('workflow_id', before.status === 'running' ? 'has not ended' : 'has completed', { value: id })
    const entries = takenOver((await loader.entries(id, 1, ctx)).map(({ value }) => value))
    const at = Date.now()
    const { result: _r, error: _e, ended: _d, finishedAt: _f, ...same } = before
    const record: RunRecord = {
      ...same,
      // the current scopes of its owner, which can be fewer than before
      scopes: before.owner === ctx.principal.id ? ctx.principal.scopes : before.scopes,
      status: 'running',
      createdAt: at,
      updatedAt: at,
      waiting: [],
      root: before.root ?? id,
      retryOf: id,
    }
    const definitions = await Promise.all(Object.values(record.definitions).map(digest => loader.definition(digest, ctx)))
    const begun = [{ t: 'started', at } as const, ...entries]
    return this.#begin({ record, definitions, entries: begun, ...(key ? { key } : {}), isDetached: detached === true }, ctx)
  }

  async #begin(beginning: Beginning, ctx: CallContext): Promise<Run> {
    const { queue, worker, store, definitions } = this.#parts
    const { record, entries, key, isDetached } = beginning
    const id = timelyId()
    const ops: StoreOp[] = [
      ...definitions.ops(beginning.definitions),
      { op: 'put', collection: RUNS, key: id, value: json(record), ifVersion: 0 },
    ]
    if (entries.length > 0) ops.push({ op: 'append', log: LOG, id, values: entries.map(json), ifLength: 0 })
    if (key)
      ops.push({
        op: 'put',
        collection: KEYS,
        key: key.key,
        value: { run: id, at: record.createdAt, asked: key.asked },
        ifVersion: key.version,
      })
    // a caller that aborts now leaves a run that is fully stored or not stored
    const lasting = { ...ctx, signal: new AbortController().signal }
    const queued = { id, due: record.createdAt, ...groupOf(record) }
    const claim = !isDetached && worker.hasRoom
    const initialCommit = new InitialCommit({ store, queue, ops, queued, claim, ctx: lasting })
    const history = historyOf(entries)
    const run = runOf(id, record, history)
    // start early only if no idempotency key or concurrency limit can prevent the run
    const isOurs = claim && !key && !queued.group
    if (isOurs) worker.begin(initialCommit, { record, history })
    initialCommit.soon()
    const { kept, claimed } = await initialCommit.opened
    if (kept.status === 'rejected') return this.#refused(kept.reason, key, claimed, ctx)
    definitions.know(ops)
    // maintenance finds a run that the queue did not accept
    if (claimed.status === 'rejected') throw claimed.reason
    if (claimed.value && !isOurs) worker.begin(claimed.value, { record, history })
    this.#parts.started(run, ctx)
    return run
  }

  #asked(key: string | undefined, asked: readonly unknown[], ctx: CallContext) {
    return key === undefined ? undefined : this.#key(keyOf(ctx, key), digest(asked), ctx)
  }

  /** The run of an idempotency key, or the record to create. Throws INVALID_VALUE if the key belongs to another request. */
  async #key(key: string, asked: string, ctx: CallContext): Promise<KeyPlace & { readonly run?: string }> {
    const found = await this.#parts.store.get(KEYS, key, ctx)
    if (!found) return { key, asked, version: 0 }
    const { run, at, asked: before } = found.value as unknown as { run: string; at: number; asked: string }
    if (Date.now() - at >= KEY_MS) return { key, asked, version: found.version }
    if (before !== asked) throw invalid('Idempotency-Key', 'was already used for another request')
    return { key, asked, version: found.version, run }
  }

  /** Returns the run of a concurrent request with the same key. */
  async #refused(
    error: unknown,
    key: KeyPlace | undefined,
    claimed: PromiseSettledResult<RunClaim | undefined>,
    ctx: CallContext
  ): Promise<Run> {
    if (claimed.status === 'fulfilled' && claimed.value)
      await this.#parts.queue.leave(claimed.value, 'ended', ctx).catch(() => {})
    const found = key === undefined || codeOf(error) !== 'STORE_CONFLICT' ? undefined : await this.#key(key.key, key.asked, ctx)
    if (found?.run === undefined) throw error
    return this.#parts.reading.get(found.run, ctx)
  }
}

/** The queue group that limits concurrent runs of a workflow. */
export const groupOf = ({ workflow, concurrency }: RunRecord) =>
  concurrency === undefined ? {} : { group: { name: workflow, limit: concurrency } }

const json = (value: object) => value as unknown as Json
const digest = (of: readonly unknown[]) => createHash('sha256').update(JSON.stringify(of)).digest('base64url')
const keyOf = ({ principal }: CallContext, key: string) => digest([principal.id, key])

function newRecord(
  definition: WorkflowDefinition,
  definitions: ReadonlyMap<string, WorkflowDefinition>,
  input: Json,
  parameters: Json,
  { principal, trace, traceState }: CallContext
): RunRecord {
  const at = Date.now()
  return {
    workflow: definition.name,
    definitions: Object.fromEntries([...definitions].map(([name, item]) => [name, digestOf(item)])),
    status: 'running',
    nodes: Object.keys(definition.nodes).length,
    owner: principal.id,
    scopes: principal.scopes,
    ...(definition.concurrency === undefined ? {} : { concurrency: definition.concurrency }),
    ...(trace === undefined ? {} : { trace }),
    ...(traceState === undefined ? {} : { traceState }),
    input,
    parameters,
    createdAt: at,
    updatedAt: at,
    waiting: [],
  }
}

/** The first compensated step of a frame, and its position in the log. Steps from there on are run again. */
interface Cut {
  readonly step: string
  readonly at: number
}

const frameOf = (step: string) => step.slice(0, step.lastIndexOf('/') + 1)

/**
 * The entries that a retry takes over: completed steps and caught failures. Other steps run again, and so do compensated steps,
 * with all later steps of their graph and of the outer graphs.
 */
function takenOver(entries: readonly Entry[]): Entry[] {
  const { steps } = historyOf(entries)
  const begun = new Map<string, number>()
  for (const [at, entry] of entries.entries()) if (entry.t === 'begun' && !begun.has(entry.s)) begun.set(entry.s, at)
  const cuts = cutsOf(undoneIn(entries, begun), begun)
  const keeps = (step: string) => {
    const past = steps.get(step)
    return past !== undefined && isOver(past) && !step.startsWith(UNDO) && isBefore(step, cuts, begun)
  }
  const isKept = (entry: Entry) => ('s' in entry ? keeps(entry.s) : entry.t === 'ended' && isWhole(entry, cuts, begun))
  return entries.filter(isKept)
}

/** The steps whose compensation started. */
function undoneIn(entries: readonly Entry[], begun: ReadonlyMap<string, number>): string[] {
  const undoing = entries.flatMap(entry => (entry.t === 'begun' && entry.s.startsWith(UNDO) ? [entry.s.slice(UNDO.length)] : []))
  return [...begun.keys()].filter(step => undoing.some(item => item.startsWith(`${step}/`)))
}

function cutsOf(undone: readonly string[], begun: ReadonlyMap<string, number>): Map<string, Cut> {
  const cuts = new Map<string, Cut>()
  const cut = (step: string) => {
    const at = begun.get(step) ?? 0
    const there = cuts.get(frameOf(step))
    if (!there || at < there.at) cuts.set(frameOf(step), { step, at })
  }
  for (const step of undone) {
    cut(step)
    for (const frame of framesOf(step)) cut(stepAbove(frame))
  }
  return cuts
}

/** The parent step of a frame: `each` for `each/3/`. */
const stepAbove = (frame: string) => frame.split('/').slice(0, -2).join('/')

/** Whether a step ran before all compensated steps of its graph, and is not inside a later step. */
function isBefore(step: string, cuts: ReadonlyMap<string, Cut>, begun: ReadonlyMap<string, number>): boolean {
  const isAfter = (text: string, orSame: boolean) => {
    const cut = cuts.get(frameOf(text))
    if (!cut || (!orSame && cut.step === text)) return false
    return cut.step === text || (begun.get(text) ?? 0) > cut.at
  }
  return !isAfter(step, true) && ![...framesOf(step)].some(frame => isAfter(stepAbove(frame), false))
}

/** Whether no step of an ended graph was compensated. */
function isWhole({ f }: EntryOf<'ended'>, cuts: ReadonlyMap<string, Cut>, begun: ReadonlyMap<string, number>): boolean {
  return !f.startsWith(UNDO) && !cuts.has(f) && isBefore(`${f}${NONE}`, cuts, begun)
}

/** A name that no step has. */
const NONE = '-'
