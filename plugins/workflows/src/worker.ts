import type { Log, SlotView, Use } from '@svc/core'
import { codeOf, messageOf } from '@svc/core'
import type { NodeStep, RunClaim, RunQueue, Store, WorkflowNode } from '@svc/core/contracts'
import { durationMs } from '@svc/workflow'
import { Drive, type DriveParts, type Left } from './drive.ts'
import type { Entry } from './entries.ts'
import { told } from './errors.ts'
import type { History } from './history.ts'
import type { Loader } from './loader.ts'
import { RUNS, type RunRecord } from './space.ts'

export interface WorkerParts {
  readonly store: Store
  readonly queue: RunQueue
  readonly loader: Loader
  readonly types: SlotView<WorkflowNode>
  readonly limits: DriveParts['limits']
  /** Runs at once. */
  readonly atOnce: number
  /** What a run has stored, for those who read along here. */
  readonly stored: (id: string, entries: readonly Entry[], first: number) => void
  readonly progress: (id: string, step: string, node: string, progress: Extract<NodeStep, { readonly type: 'progress' }>) => void
  readonly ended: (id: string, record: RunRecord) => void
  readonly log: Log
  readonly lasting: Use
}

/** Claims are kept so often. */
const KEEP_MS = 10_000

interface Active {
  readonly claim: RunClaim
  readonly done: Promise<void>
  drive: Drive | undefined
  /** News came before the run was read. */
  hasNews: boolean
}

/** Works on runs: those that are begun here, and those that the queue gives. */
export class Worker {
  readonly #parts: WorkerParts
  readonly #active = new Map<string, Active>()
  readonly #taking = new AbortController()
  #keeping: NodeJS.Timeout | undefined
  #room: (() => void) | undefined
  #isLeaving = false

  constructor(parts: WorkerParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#active.size
  }

  /** Takes what the queue has, until it is stopped. */
  async take(): Promise<void> {
    const { queue, lasting, log } = this.#parts
    const signal = AbortSignal.any([lasting.signal, this.#taking.signal])
    while (!signal.aborted) {
      try {
        for await (const claim of queue.take({ ...lasting, signal })) {
          this.begin(claim)
          await this.#hasRoom()
          if (signal.aborted) return
        }
      } catch (err) {
        if (signal.aborted) return
        log.warn({ err }, 'runs cannot be taken from the queue')
        await new Promise(resolve => setTimeout(resolve, 1_000))
      }
    }
  }

  /** Works on a run that was claimed; with its record and an empty log where it has just been made here. */
  begin(claim: RunClaim, made?: { readonly record: RunRecord; readonly history: History }): void {
    this.#keeping ??= setInterval(() => void this.#keep(), KEEP_MS).unref()
    const begun = Promise.withResolvers<void>()
    const active: Active = { claim, done: begun.promise, drive: undefined, hasNews: false }
    this.#active.set(claim.id, active)
    void this.#work(active, made).finally(() => {
      this.#active.delete(claim.id)
      this.#room?.()
      begun.resolve()
    })
  }

  /** There is news for a run; false where it is not worked on here. */
  async news(id: string): Promise<boolean> {
    const active = this.#active.get(id)
    if (!active) return false
    if (active.drive) active.drive.take(await this.#parts.loader.news(id, this.#parts.lasting))
    else active.hasNews = true
    return true
  }

  /** Begins nothing new, and lets running nodes end; those that have not by then are given up. */
  async drain(limitMs: number): Promise<void> {
    this.#isLeaving = true
    this.#taking.abort()
    const active = [...this.#active.values()]
    for (const { drive } of active) drive?.stop()
    const all = Promise.all(active.map(({ done }) => done))
    const timer = setTimeout(() => active.forEach(({ drive }) => drive?.abandon()), Math.min(limitMs, 2 ** 31 - 1))
    await all.finally(() => clearTimeout(timer))
    clearInterval(this.#keeping)
  }

  async #hasRoom(): Promise<void> {
    while (this.#active.size >= this.#parts.atOnce) await new Promise<void>(resolve => (this.#room = resolve))
  }

  async #work(active: Active, made: { readonly record: RunRecord; readonly history: History } | undefined): Promise<void> {
    const { claim } = active
    try {
      const left = await this.#drive(active, made)
      if (left) await this.#leave(claim, left)
    } catch (error) {
      this.#parts.log.error({ err: error, run: claim.id }, 'a run could not be worked on')
      await this.#parts.queue.leave(claim, { due: Date.now() + 5_000 }, this.#parts.lasting).catch(() => {})
    }
  }

  async #drive(active: Active, made: { readonly record: RunRecord; readonly history: History } | undefined): Promise<Left | undefined> {
    const { loader, lasting, store, types, limits, log } = this.#parts
    const { claim } = active
    const record = made?.record ?? (await loader.record(claim.id, lasting))
    if (record?.status !== 'running') return record ? { how: 'ended', record } : this.#forgotten(claim)
    const history = made?.history ?? (await loader.history(claim.id, lasting))
    const loaded = await loader.ready(claim.id, record, history, lasting).catch((error: unknown) => this.#cannot(claim, record, error))
    if (!loaded) return undefined
    const drive = new Drive({
      store,
      types,
      claim,
      loaded,
      limits: { ...limits, ...timeoutOf(loaded.definition.timeout) },
      stored: (entries, first) => this.#parts.stored(claim.id, entries, first),
      progress: (step, node, progress) => this.#parts.progress(claim.id, step, node, progress),
      log,
      use: lasting,
    })
    active.drive = drive
    if (this.#isLeaving) drive.stop()
    if (!made || active.hasNews) drive.take(await loader.news(claim.id, lasting))
    return drive.run()
  }

  /** A claim without a run: it was deleted. */
  async #forgotten(claim: RunClaim): Promise<undefined> {
    await this.#parts.queue.leave(claim, 'ended', this.#parts.lasting)
  }

  /** It cannot even be made ready: a secret is gone. The run has failed. */
  async #cannot(claim: RunClaim, record: RunRecord, error: unknown): Promise<undefined> {
    if (codeOf(error) === 'STORE_UNAVAILABLE') throw error
    const { store, lasting, log } = this.#parts
    const at = Date.now()
    log.warn({ run: claim.id, error: messageOf(error) }, 'a run cannot be made ready')
    const failed: RunRecord = { ...record, status: 'failed', error: told(error), waiting: [], updatedAt: at, finishedAt: at }
    await store.batch([{ op: 'put', collection: RUNS, key: claim.id, value: failed as never }], { fence: claim.fence }, lasting)
    await this.#leave(claim, { how: 'ended', record: failed })
  }

  async #leave(claim: RunClaim, left: Left): Promise<void> {
    const { queue, lasting, ended } = this.#parts
    if (left.how === 'ended') ended(claim.id, left.record)
    if (left.how === 'ended') await queue.leave(claim, 'ended', lasting)
    else if (left.how === 'asleep') await queue.leave(claim, { due: left.due }, lasting)
    else if (left.how === 'stopped') await queue.leave(claim, { due: Date.now() }, lasting)
  }

  async #keep(): Promise<void> {
    const { queue, lasting } = this.#parts
    await Promise.all(
      [...this.#active.values()].map(async ({ claim, drive }) => {
        try {
          await queue.keep(claim, lasting)
          await this.news(claim.id)
        } catch (error) {
          if (codeOf(error) === 'STORE_FENCED') drive?.abandon()
        }
      })
    )
  }
}

const timeoutOf = (timeout: string | undefined) => {
  const ms = timeout === undefined ? undefined : durationMs(timeout)
  return ms === undefined ? {} : { runTimeoutMs: ms }
}
