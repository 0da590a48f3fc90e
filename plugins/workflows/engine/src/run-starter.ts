import { createHash } from 'node:crypto'
import { type CallContext, codeOf, type Log } from '@svc/core'
import type {
  Json,
  ReplayRequest,
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
import type { Continuation } from './frame.ts'
import { type Entry, type History, historyOf } from './history.ts'
import { moveLetters } from './inbox.ts'
import { InitialCommit } from './initial-commit.ts'
import { digestOf, type WorkflowLibrary } from './library.ts'
import type { Loader } from './loader.ts'
import type { WorkflowPauses } from './pauses.ts'
import type { NextRun } from './run-executor.ts'
import type { RunReader, StoredRun } from './run-reader.ts'
import { groupOf, KEYS, LOG, type RunRecord, RUNS } from './space.ts'
import { checkNode, checkPath, reusedBefore, takenOver } from './taken-over.ts'
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
  readonly pauses: WorkflowPauses
  readonly log: Log
  readonly lasting: CallContext
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
  /** The ended run that it continues. A failed one is no dead letter from then on. */
  readonly continues?: StoredRun
}

/** How long an idempotency key is valid. */
const KEY_MS = TOUCH_MS
/** When the next run starts if the worker dies before it can start it. */
const NEXT_MS = 5_000
/** Why a current definition is not used for it. */
const UNUSABLE: ReadonlySet<string | undefined> = new Set(['WORKFLOW_UNKNOWN', 'WORKFLOW_INVALID'])
/** How often a start is repeated while others change the record of the run that it continues. */
const MOST_TRIES = 5

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
    const paused = this.#parts.pauses.get(definition.name, ctx)
    // an invalid input is reported first
    paused.catch(() => {})
    const given = structuredClone(input)
    await checkInput(definition, given)
    const values = await withDefaults(definition, structuredClone(parameters))
    const definitions = await this.#parts.definitions.within(definition)
    for (const item of definitions.values()) await this.#parts.loader.secretsOf(item)
    const record = newRecord(definition, definitions, given, values, ctx)
    return this.#begin(
      { record, definitions: definitions.values(), entries: [], ...(key ? { key } : {}), isDetached: detached === true },
      ctx,
      paused
    )
  }

  /** Starts a run that continues a failed or cancelled run. */
  async retry(id: string, { idempotencyKey, detached, once }: RetryRequest, ctx: CallContext): Promise<Run> {
    const { reading, loader } = this.#parts
    const key = await this.#asked(idempotencyKey, ['retry', id], ctx)
    if (key?.run !== undefined) return reading.get(key.run, ctx)
    return this.#continued(id, ctx, async before => {
      const { record: ended } = before
      if (ended.status !== 'failed')
        throw invalid('workflow_id', ended.status === 'running' ? 'has not ended' : 'has completed', { value: id })
      if (once === true && ended.continuedBy !== undefined)
        throw invalid('workflow_id', `is continued by ${ended.continuedBy}`, { value: id })
      const entries = takenOver((await loader.entries(id, 1, ctx)).map(({ value }) => value))
      const record = retryRecord(id, ended, ctx)
      const definitions = await Promise.all(Object.values(record.definitions).map(digest => loader.definition(digest, ctx)))
      const begun = [{ t: 'started', at: record.createdAt } as const, ...entries]
      const same = { definitions, entries: begun, ...(key ? { key } : {}), isDetached: detached === true }
      return { ...same, record, continues: before }
    })
  }

  /** Starts a run that repeats an ended run from a node, with the recorded results of the nodes before it. */
  async replay(id: string, request: ReplayRequest, ctx: CallContext): Promise<Run> {
    const { idempotencyKey, detached, ...asked } = request
    const key = await this.#asked(idempotencyKey, ['replay', id, asked], ctx)
    if (key?.run !== undefined) return this.#parts.reading.get(key.run, ctx)
    return this.#continued(id, ctx, async before => {
      if (before.record.status === 'running') throw invalid('workflow_id', 'has not ended', { value: id })
      const beginning = await this.#replayed(before, asked, ctx)
      return { ...beginning, ...(key ? { key } : {}), isDetached: detached === true }
    })
  }

  async #replayed(before: StoredRun, { from, input, parameters, definition = 'same' }: ReplayRequest, ctx: CallContext) {
    const { loader } = this.#parts
    const { id, record: ended } = before
    const definitions = await this.#definitionsOf(ended, definition, ctx)
    const outermost = definitions.get(ended.workflow)!
    const { graph } = loader.know(digestOf(outermost), outermost)
    const start = from ?? graph.start
    checkNode(graph, start)
    const log = start === graph.start ? [] : (await loader.entries(id, 1, ctx)).map(({ value }) => value)
    const reused = start === graph.start ? [] : reusedBefore(log, start)
    checkPath(graph, reused, start)
    const given = structuredClone(input === undefined ? ended.input : input)
    await checkInput(outermost, given)
    const values = await withDefaults(outermost, structuredClone(parameters === undefined ? ended.parameters : parameters))
    for (const item of definitions.values()) await loader.secretsOf(item)
    const record: RunRecord = {
      ...newRecord(outermost, definitions, given, values, ctx),
      ...ownerOf(ended, ctx),
      replayOf: id,
      replayFrom: start,
      reused: reused.length + 1,
    }
    const entries: Entry[] = [{ t: 'started', at: record.createdAt }, ...reused]
    return { record, definitions: definitions.values(), entries, continues: before }
  }

  /** Prepares the run that continues another as new. Throws INVALID_VALUE if the input does not match. */
  async next(id: string, history: History, before: RunRecord, how: Continuation, ctx: CallContext): Promise<NextRun> {
    const { store, queue, loader, pauses, definitions: stored, lasting } = this.#parts
    const definitions = await this.#nextDefinitions(before, how, ctx)
    const outermost = definitions.get(before.workflow)!
    const input = structuredClone(how.input)
    await checkInput(outermost, input)
    const values = await withDefaults(outermost, structuredClone(how.parameters ?? before.parameters))
    for (const item of definitions.values()) await loader.secretsOf(item)
    const record: RunRecord = {
      ...newRecord(outermost, definitions, input, values, ctx),
      owner: before.owner,
      scopes: before.scopes,
      previousRun: id,
      firstRun: before.firstRun ?? id,
    }
    // events that no step has taken go on with it
    const entries: Entry[] = history.events.length === 0 ? [] : [{ t: 'started', at: record.createdAt }, ...history.events]
    const isHeld = (await pauses.get(before.workflow, ctx)) !== undefined
    const beginning = { record, definitions: definitions.values(), entries, isDetached: true }
    const made = isHeld ? heldBack(beginning) : beginning
    const nextId = timelyId()
    const put = (due: number) =>
      queue.put({ id: nextId, ...(isHeld ? {} : { due }), ...groupOf(record) }, { claim: false }, lasting)
    const definitionOps = stored.ops(definitions.values())
    return {
      id: nextId,
      ops: [...definitionOps, ...opsOf(nextId, made)],
      queue: async () => void (await put(Date.now() + NEXT_MS)),
      begin: async () => {
        stored.know(definitionOps)
        this.#parts.started(runOf(nextId, record, historyOf(entries)), ctx)
        try {
          await moveLetters(store, id, nextId, await loader.news(id, lasting), lasting)
          await put(Date.now())
          if (isHeld) await this.#releaseLate(nextId, record, lasting)
        } catch (err) {
          this.#parts.log.warn({ err, run: nextId }, 'the next run of a workflow starts later')
        }
      },
    }
  }

  /** The current definitions of a workflow that can run, otherwise those of the run: an endless run must not end with a broken file. */
  async #nextDefinitions(before: RunRecord, { definition }: Continuation, ctx: CallContext) {
    if (definition === 'current') {
      try {
        return await this.#definitionsOf(before, 'current', ctx)
      } catch (err) {
        if (!UNUSABLE.has(codeOf(err))) throw err
        if (codeOf(err) !== 'WORKFLOW_UNKNOWN')
          this.#parts.log.warn({ err, workflow: before.workflow }, 'a run continues with its own version of the workflow')
      }
    }
    return this.#definitionsOf(before, 'same', ctx)
  }

  /** The definitions of a run, as they were or as they are. */
  async #definitionsOf({ workflow, definitions }: RunRecord, which: 'same' | 'current', ctx: CallContext) {
    if (which === 'current') {
      const { definition } = await this.#parts.library.ready(workflow)
      return this.#parts.definitions.within(definition)
    }
    const { loader } = this.#parts
    const entries = Object.entries(definitions).map(
      async ([name, digest]) => [name, await loader.definition(digest, ctx)] as const
    )
    return new Map(await Promise.all(entries))
  }

  /** Begins a run that continues an ended one. Repeats it if the record of the ended one changed meanwhile. */
  async #continued(id: string, ctx: CallContext, make: (before: StoredRun) => Promise<Beginning>): Promise<Run> {
    for (let left = MOST_TRIES; ; left -= 1) {
      const before = await this.#parts.reading.stored(id, ctx)
      try {
        return await this.#begin(await make(before), ctx)
      } catch (error) {
        if (codeOf(error) !== 'STORE_CONFLICT' || left <= 1) throw error
      }
    }
  }

  async #begin(
    beginning: Beginning,
    ctx: CallContext,
    paused: Promise<number | undefined> = this.#parts.pauses.get(beginning.record.workflow, ctx)
  ): Promise<Run> {
    const { queue, worker, store, definitions } = this.#parts
    const isHeld = (await paused) !== undefined
    const { record, entries, key, isDetached, continues } = isHeld ? heldBack(beginning) : beginning
    const id = timelyId()
    const ops = [...definitions.ops(beginning.definitions), ...opsOf(id, { ...beginning, record, entries })]
    // a caller that aborts now leaves a run that is fully stored or not stored
    const lasting = { ...ctx, signal: new AbortController().signal }
    const queued = { id, ...(isHeld ? {} : { due: record.createdAt }), ...groupOf(record) }
    const claim = !isDetached && !isHeld && worker.hasRoom
    const initialCommit = new InitialCommit({ store, queue, ops, queued, claim, ctx: lasting })
    const history = historyOf(entries)
    const run = runOf(id, record, history)
    // start early only if no idempotency key, continued run or concurrency limit can prevent the run
    const isOurs = claim && !key && !continues && !queued.group
    if (isOurs) worker.begin(initialCommit, { record, history })
    initialCommit.soon()
    const { kept, claimed } = await initialCommit.opened
    if (kept.status === 'rejected') return this.#refused(kept.reason, key, claimed, ctx)
    definitions.know(ops)
    // maintenance finds a run that the queue did not accept
    if (claimed.status === 'rejected') throw claimed.reason
    if (claimed.value && !isOurs) worker.begin(claimed.value, { record, history })
    this.#parts.started(run, ctx)
    if (isHeld) await this.#releaseLate(id, record, ctx)
    return run
  }

  /** Lets a run go whose workflow was resumed while it was stored. */
  async #releaseLate(id: string, { workflow }: RunRecord, ctx: CallContext): Promise<void> {
    const { pauses } = this.#parts
    if ((await pauses.read(workflow, ctx)) === undefined) await pauses.go(id, ctx)
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

const json = (value: object) => value as unknown as Json
const digest = (of: readonly unknown[]) => createHash('sha256').update(JSON.stringify(of)).digest('base64url')
const keyOf = ({ principal }: CallContext, key: string) => digest([principal.id, key])

/** The operations that store a run, its idempotency key, and its link in the run that it continues. */
function opsOf(id: string, { record, entries, key, continues }: Beginning): StoreOp[] {
  const ops: StoreOp[] = [{ op: 'put', collection: RUNS, key: id, value: json(record), ifVersion: 0 }]
  if (continues) ops.push(...continuedOps(continues, id))
  if (entries.length > 0) ops.push({ op: 'append', log: LOG, id, values: entries.map(json), ifLength: 0 })
  if (key) {
    const value = { run: id, at: record.createdAt, asked: key.asked }
    ops.push({ op: 'put', collection: KEYS, key: key.key, value, ifVersion: key.version })
  }
  return ops
}

/** A run of a paused workflow waits before its first step. */
function heldBack(beginning: Beginning): Beginning {
  const { record, entries } = beginning
  const at = record.createdAt
  const begun: readonly Entry[] = entries.length > 0 ? entries : [{ t: 'started', at }]
  const paused: Entry = { t: 'paused', at }
  return { ...beginning, record: { ...record, pausedAt: at, held: true }, entries: [...begun, paused] }
}

/** The write that names the run which continues a failed one. */
const continuedOps = ({ id, record, version }: StoredRun, by: string): StoreOp[] =>
  record.status === 'failed'
    ? [{ op: 'put', collection: RUNS, key: id, value: json({ ...record, continuedBy: by }), ifVersion: version }]
    : []

/** A run that continues another belongs to the same owner, with its current scopes, which can be fewer than before. */
const ownerOf = ({ owner, scopes }: RunRecord, { principal }: CallContext) => ({
  owner,
  scopes: owner === principal.id ? principal.scopes : scopes,
})

function retryRecord(id: string, before: RunRecord, ctx: CallContext): RunRecord {
  const { result: _r, error: _e, ended: _d, finishedAt: _f, continuedBy: _c, replayOf: _o, replayFrom: _p, ...rest } = before
  const { pausedAt: _a, held: _h, nextRun: _n, affinity: _y, ...same } = rest
  const at = Date.now()
  const times = { createdAt: at, updatedAt: at, waiting: [] }
  return { ...same, ...ownerOf(before, ctx), status: 'running', ...times, root: before.root ?? id, retryOf: id }
}

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
