import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type CallContext, type Log } from '@svc/core'
import type { Json, Peers, Run, RunQueue, Store, StoreOp } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { follow } from '@svc/storage-kit/follow'
import { invalid, pauseForbidden } from './errors.ts'
import { pauseKey } from './inbox.ts'
import type { WorkflowLibrary } from './library.ts'
import type { RunActions } from './run-actions.ts'
import { seesAll } from './run-filter.ts'
import type { RunReader } from './run-reader.ts'
import { groupOf, INBOX, PAUSES, type RunRecord, RUNS, type StoredPause } from './space.ts'

interface HeldRunsOptions {
  readonly store: Store
  readonly queue: RunQueue
  readonly peers?: Peers | undefined
}

/** The topic of messages between workers: a workflow is paused, or goes on. */
export const PAUSED = 'workflows.paused'
interface PauseNews {
  readonly workflow: string
  readonly at: number | null
}

/**
 * The paused workflows, and the runs that their pause holds back. Each start of a run looks them up, so a server keeps them in
 * memory while it follows the store.
 */
export class WorkflowPauses {
  readonly #options: HeldRunsOptions
  #known: Map<string, number> | undefined
  #changes = 0
  #readAll: (ctx: CallContext) => Promise<void> = async () => {}

  constructor(options: HeldRunsOptions) {
    this.#options = options
  }

  /** Keeps the paused workflows in memory until the host closes. */
  follow(log: Log, lasting: CallContext): void {
    const { store } = this.#options
    const watch = async (ctx: CallContext) => {
      try {
        for await (const { key, value } of store.watch(PAUSES, ctx))
          this.#learn(key, (value as unknown as StoredPause | undefined)?.at ?? null)
      } finally {
        this.#known = undefined
      }
    }
    const read = async (ctx: CallContext) => {
      for (let before = -1; before !== this.#changes && !ctx.signal.aborted; ) {
        before = this.#changes
        const all = await this.all(ctx)
        if (before === this.#changes && !ctx.signal.aborted) this.#known = new Map(all)
      }
    }
    this.#readAll = read
    void follow({ what: 'paused workflows', watch, read }, lasting, log)
  }

  /** A message of another worker with the topic `PAUSED`. */
  onPeerMessage(message: unknown): void {
    const { workflow, at } = message as PauseNews
    this.#learn(workflow, at)
  }

  /** Messages of other workers can be lost: until all are read, the store is asked for each workflow. */
  async onMissed(ctx: CallContext): Promise<void> {
    if (this.#known === undefined) return
    this.#known = undefined
    await this.#readAll(ctx)
  }

  #learn(workflow: string, at: number | null): void {
    this.#changes += 1
    if (at === null) this.#known?.delete(workflow)
    else this.#known?.set(workflow, at)
  }

  /** Since when a workflow is paused (Unix milliseconds). */
  async get(workflow: string, ctx: CallContext): Promise<number | undefined> {
    return this.#known ? this.#known.get(workflow) : this.read(workflow, ctx)
  }

  /** The same, as the store has it now. */
  async read(workflow: string, ctx: CallContext): Promise<number | undefined> {
    const found = await this.#options.store.get(PAUSES, workflow, ctx)
    return (found?.value as unknown as StoredPause | undefined)?.at
  }

  /** All paused workflows, and since when. */
  async all(ctx: CallContext): Promise<ReadonlyMap<string, number>> {
    const all = new Map<string, number>()
    for (let cursor: string | undefined; ; ) {
      const page = await this.#options.store.range(PAUSES, { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }, ctx)
      for (const { key, value } of page.records) all.set(key, (value as unknown as StoredPause).at)
      cursor = page.next
      if (cursor === undefined) return all
    }
  }

  /** Returns whether the state has changed. */
  async set(workflow: string, isPaused: boolean, ctx: CallContext): Promise<boolean> {
    const { store, peers } = this.#options
    const value = { at: Date.now(), by: ctx.principal.id } satisfies StoredPause
    const op: StoreOp = isPaused
      ? { op: 'put', collection: PAUSES, key: workflow, value, ifVersion: 0 }
      : { op: 'delete', collection: PAUSES, key: workflow, ifVersion: 1 }
    let hasChanged = true
    try {
      await store.batch([op], {}, ctx)
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
      hasChanged = false
    }
    const news: PauseNews = { workflow, at: isPaused ? value.at : null }
    this.#learn(workflow, news.at)
    // no worker of this server starts a run from now on that misses it; other servers read it from the store
    await peers?.broadcast(PAUSED, { ...news }, ctx).catch(() => {})
    return hasChanged
  }

  /** Lets the runs go that were started while their workflow was paused, unless it is paused now. Returns their number. */
  async release(ctx: CallContext, workflow?: string): Promise<number> {
    const { store } = this.#options
    const paused = await this.all(ctx)
    let count = 0
    for (let cursor: string | undefined; ; ) {
      const query = { index: 'by_status', equals: ['running'], limit: PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const page = await store.range(RUNS, query, ctx)
      for (const { key, value } of page.records) {
        const record = value as unknown as RunRecord
        if (record.held !== true || paused.has(record.workflow) || (workflow ?? record.workflow) !== record.workflow) continue
        if (await this.go(key, ctx)) count += 1
      }
      cursor = page.next
      if (cursor === undefined) return count
    }
  }

  /** Lets a paused run go on. Returns false if it is not paused, nor about to be. */
  async go(id: string, ctx: CallContext): Promise<boolean> {
    const { store, queue } = this.#options
    for (;;) {
      const [found, letter] = await Promise.all([store.get(RUNS, id, ctx), store.get(INBOX, pauseKey(id), ctx)])
      const record = found?.value as unknown as RunRecord | undefined
      if (!found || record?.status !== 'running' || (record.pausedAt === undefined && !letter)) return false
      const { pausedAt, held: _held, ...rest } = record
      // without waits, maintenance queues it again if this process ends before it does
      const value = { ...rest, waiting: [], updatedAt: Date.now() } as unknown as Json
      const ops: StoreOp[] = [
        ...(pausedAt === undefined ? [] : [{ op: 'put' as const, collection: RUNS, key: id, value, ifVersion: found.version }]),
        ...(letter ? [{ op: 'delete' as const, collection: INBOX, key: pauseKey(id), ifVersion: letter.version }] : []),
      ]
      try {
        await store.batch(ops, {}, ctx)
      } catch (error) {
        if (codeOf(error) === 'STORE_CONFLICT') continue
        throw error
      }
      await queue.put({ id, due: Date.now(), ...groupOf(record) }, { claim: false }, ctx)
      return true
    }
  }
}

const PAGE = 200
/** Names of workflows; others are paths. */
const NAME = /^[a-z][\w-]{0,63}$/
/** How long a caller waits for a running node to end, and how often that is looked up. */
const [PAUSE_MS, LOOK_MS] = [10_000, 100]

export interface RunPausesOptions {
  readonly library: WorkflowLibrary
  readonly pauses: WorkflowPauses
  readonly reading: RunReader
  readonly runActions: RunActions
  readonly publish: Publish
}

/** Pauses and resumes runs and workflows for callers that can. */
export class RunPauses {
  readonly #options: RunPausesOptions

  constructor(options: RunPausesOptions) {
    this.#options = options
  }

  /** Resolves when the run is paused or has ended, or after 10 s: then a node of it still runs. */
  async pause(id: string, ctx: CallContext): Promise<Run> {
    const { reading, runActions, publish } = this.#options
    const record = await reading.record(id, ctx)
    if (record.status !== 'running') throw invalid('workflow_id', `has ended: ${record.status}`, { value: id })
    if (record.pausedAt !== undefined) return reading.get(id, ctx)
    await runActions.requestPause(id, ctx)
    publish({ type: 'workflow_run_paused', subject: `workflows/runs/${id}`, after: { workflow: record.workflow } }, ctx)
    for (const until = performance.now() + PAUSE_MS; performance.now() < until; ) {
      const { status, pausedAt } = await reading.record(id, ctx)
      if (status !== 'running' || pausedAt !== undefined) break
      await sleep(LOOK_MS, undefined, { signal: ctx.signal })
    }
    return reading.get(id, ctx)
  }

  async resume(id: string, ctx: CallContext): Promise<Run> {
    const { reading, pauses, publish } = this.#options
    const { status, held, workflow } = await reading.record(id, ctx)
    if (status !== 'running') throw invalid('workflow_id', `has ended: ${status}`, { value: id })
    if (held === true && (await pauses.read(workflow, ctx)) !== undefined)
      throw invalid('workflow_id', 'waits because its workflow is paused', { value: id })
    if (!(await pauses.go(id, ctx))) throw invalid('workflow_id', 'is not paused', { value: id })
    publish({ type: 'workflow_run_resumed', subject: `workflows/runs/${id}`, after: { workflow } }, ctx)
    return reading.get(id, ctx)
  }

  /** Runs that start from now on wait. Others go on. */
  async pauseWorkflow(workflow: string, ctx: CallContext): Promise<void> {
    const { library, pauses, publish } = this.#options
    if (!seesAll(ctx)) throw pauseForbidden()
    const { name } = await library.find(workflow)
    if (await pauses.set(name, true, ctx)) publish({ type: 'workflow_paused', subject: `workflows/${name}` }, ctx)
  }

  /** Returns the number of runs that waited. A workflow whose file is gone can be resumed, too. */
  async resumeWorkflow(workflow: string, ctx: CallContext): Promise<number> {
    const { library, pauses, publish } = this.#options
    if (!seesAll(ctx)) throw pauseForbidden()
    const isKnown = NAME.test(workflow) && (await pauses.read(workflow, ctx)) !== undefined
    const name = isKnown ? workflow : (await library.find(workflow)).name
    const hasChanged = await pauses.set(name, false, ctx)
    const released = await pauses.release(ctx, name)
    if (hasChanged) publish({ type: 'workflow_resumed', subject: `workflows/${name}`, after: { released } }, ctx)
    return released
  }
}
