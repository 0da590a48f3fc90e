import { randomUUID } from 'node:crypto'
import { codeOf, type Use } from '@svc/core'
import type { Json, Run, RunQueue, RunRequest, Store, StoreOp, WorkflowDefinition } from '@svc/core/contracts'
import { nodesWithin } from '@svc/workflow'
import type { Entry } from './entries.ts'
import { invalid } from './errors.ts'
import { type History, newHistory, note } from './history.ts'
import { digestOf, type Library } from './library.ts'
import type { Loader } from './loader.ts'
import type { Reading } from './reading.ts'
import { DEFINITIONS, KEYS, LOG, RUNS, type RunRecord } from './space.ts'
import { checkInput, withDefaults } from './values.ts'
import { runOf } from './views.ts'
import type { Worker } from './worker.ts'

export interface StartingParts {
  readonly store: Store
  readonly queue: RunQueue
  readonly library: Library
  readonly loader: Loader
  readonly reading: Reading
  readonly worker: Worker
}

/** Begins runs. */
export class Starting {
  readonly #parts: StartingParts
  /** Digests that are known to be stored. */
  readonly #stored = new Set<string>()

  constructor(parts: StartingParts) {
    this.#parts = parts
  }

  async start({ workflow, input = {}, parameters = {}, idempotencyKey }: RunRequest, use: Use): Promise<Run> {
    const { library, loader } = this.#parts
    const known = typeof workflow === 'string' ? await library.ready(workflow) : library.made(workflow)
    const given = structuredClone(input)
    await checkInput(known.definition, given)
    const values = await withDefaults(known.definition, structuredClone(parameters))
    await loader.secretsOf(known.definition)
    const definitions = await this.#within(known.definition)
    const record = newRecord(known.definition, [...definitions].map(([name, one]) => [name, digestOf(one)]), given, values, use)
    return this.#begin(record, [...definitions.values()], [], idempotencyKey, use)
  }

  /** A run that goes on from what a failed one has done. */
  async retry(id: string, use: Use): Promise<Run> {
    const { reading, loader } = this.#parts
    const before = await reading.record(id, use)
    if (before.status !== 'failed') throw invalid('workflow_id', before.status === 'running' ? 'has not ended' : 'has completed', { value: id })
    const entries = (await loader.entries(id, 1, use)).map(({ value }) => value)
    const at = Date.now()
    const { result: _r, error: _e, ended: _d, finishedAt: _f, ...same } = before
    const record: RunRecord = { ...same, status: 'running', createdAt: at, updatedAt: at, ranMs: 0, waiting: [], root: before.root ?? id, retryOf: id }
    return this.#begin(record, [], doneOf(entries), undefined, use)
  }

  /** The definition, and those of all workflows within, as they are now. */
  async #within(definition: WorkflowDefinition): Promise<Map<string, WorkflowDefinition>> {
    const found = new Map([[definition.name, definition]])
    for (const one of found.values())
      for (const { node } of nodesWithin(one))
        if (node.type === 'subworkflow' && typeof node.workflow === 'string' && !found.has(node.workflow)) {
          const known = await this.#parts.library.ready(node.workflow)
          found.set(node.workflow, known.definition)
        }
    return found
  }

  async #begin(record: RunRecord, definitions: readonly WorkflowDefinition[], entries: readonly Entry[], key: string | undefined, use: Use): Promise<Run> {
    const { queue, worker, store } = this.#parts
    const id = randomUUID()
    const ops: StoreOp[] = [...this.#definitionOps(definitions), { op: 'put', collection: RUNS, key: id, value: json(record), ifVersion: 0 }]
    if (entries.length > 0) ops.push({ op: 'append', log: LOG, id, values: entries.map(json), ifLength: 0 })
    if (key !== undefined) ops.push({ op: 'put', collection: KEYS, key: keyOf(use, key), value: { run: id, at: Date.now() }, ifVersion: 0 })
    const lasting = { ...use, signal: new AbortController().signal }
    const stored = store.batch(ops, {}, lasting)
    const first = [...definitions][0]
    const group = first?.concurrency === undefined ? {} : { group: { name: record.workflow, limit: first.concurrency } }
    const queued = queue.put({ id, due: record.createdAt, ...group }, { claim: true }, lasting)
    const [kept, claimed] = await Promise.allSettled([stored, queued])
    if (kept.status === 'rejected') return this.#refused(kept.reason, key, use)
    if (claimed.status === 'rejected') throw claimed.reason
    for (const one of definitions) this.#stored.add(digestOf(one))
    const history = historyOf(entries)
    if (claimed.value) worker.begin(claimed.value, { record, history })
    return runOf(id, record, history)
  }

  /** A key that was used answers the run it was used for. */
  async #refused(error: unknown, key: string | undefined, use: Use): Promise<Run> {
    if (key === undefined || codeOf(error) !== 'STORE_CONFLICT') throw error
    const found = await this.#parts.store.get(KEYS, keyOf(use, key), use)
    if (!found) throw error
    return this.#parts.reading.get((found.value as { run: string }).run, use)
  }

  #definitionOps(definitions: readonly WorkflowDefinition[]): StoreOp[] {
    return definitions.flatMap(one => {
      const digest = digestOf(one)
      this.#parts.loader.know(digest, one)
      return this.#stored.has(digest) ? [] : [{ op: 'put' as const, collection: DEFINITIONS, key: digest, value: json(one) }]
    })
  }
}

const json = (value: object) => value as unknown as Json
const keyOf = ({ principal }: Use, key: string) => `${principal.id}\n${key}`.slice(0, 1_000)

function newRecord(
  definition: WorkflowDefinition,
  definitions: readonly (readonly [string, string])[],
  input: Json,
  parameters: Json,
  { principal, trace }: Use
): RunRecord {
  const at = Date.now()
  return {
    workflow: definition.name,
    definitions: Object.fromEntries(definitions),
    status: 'running',
    nodes: Object.keys(definition.nodes).length,
    owner: principal.id,
    scopes: principal.scopes,
    ...(trace === undefined ? {} : { trace }),
    input,
    parameters,
    createdAt: at,
    updatedAt: at,
    ranMs: 0,
    waiting: [],
  }
}

const UNDO = 'undo/'
const frameOf = (step: string) => step.slice(0, step.lastIndexOf('/') + 1)

/** What of a log a new run takes over: what was done, and failures that were caught. What was not is begun anew. */
function doneOf(entries: readonly Entry[]): Entry[] {
  const { steps } = historyOf(entries)
  const lastBegun = new Map(entries.flatMap((entry, at) => (entry.t === 'begun' ? [[frameOf(entry.s), at] as const] : [])))
  const failedAt = new Map(entries.flatMap((entry, at) => (entry.t === 'failed' ? [[entry.s, at] as const] : [])))
  const isCaught = (step: string) => (lastBegun.get(frameOf(step)) ?? 0) > (failedAt.get(step) ?? Number.POSITIVE_INFINITY)
  const isOver = (step: string) => !step.startsWith(UNDO) && (steps.get(step)?.last.t === 'done' || isCaught(step))
  return entries.filter(entry => ('s' in entry ? isOver(entry.s) : entry.t === 'ended' && !entry.f.startsWith(UNDO)))
}

function historyOf(entries: readonly Entry[]): History {
  const history = newHistory()
  for (const entry of entries) note(history, entry)
  return history
}
