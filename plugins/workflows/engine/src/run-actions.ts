import { isDeepStrictEqual } from 'node:util'
import { codeOf, type CallContext } from '@svc/core'
import type { Json, Peers, Question, Run, RunQueue, Store, Waiting } from '@svc/core/contracts'
import type { Publish } from '@svc/plugin-kit'
import { toolSchema } from '@svc/plugin-kit/tool-schema'
import { inboxFull, invalid, notAllowed } from './errors.ts'
import { waitingIn } from './history.ts'
import { answerKey, cancelKey, moveLetters, pauseKey } from './inbox.ts'
import type { Loader } from './loader.ts'
import { sizeUpTo } from './redaction.ts'
import type { RunInterfaces } from './run-interface.ts'
import type { RunReader } from './run-reader.ts'
import { isDead } from './run-filter.ts'
import { INBOX, removalOf, RUNS, type ChangeNotice, type RunRecord } from './space.ts'
import type { RunWorker } from './worker.ts'

export interface RunActionsOptions {
  readonly store: Store
  readonly queue: RunQueue
  readonly peers: Peers | undefined
  readonly loader: Loader
  readonly reading: RunReader
  readonly interfaces: RunInterfaces
  readonly worker: RunWorker
  readonly publish: Publish
}

/** The topic of messages between workers: a run has a new notice. */
export const NEWS = 'workflows.news'
const CANCEL_MS = 10_000
const MOST_EVENTS = 1_000
const TURN_DIGITS = 12
/** Maximum size of an answer or event, in bytes of JSON. */
const LARGEST = 1_048_576
/** Bytes of JSON of the events that wait in an inbox: each further event reads them. */
const MOST_WAITING = 8 * 1_048_576
const INBOX_PAGE = 1_000

/** Sends notices to runs. A notice goes to the inbox of the run, and the worker that executes the run takes it from there. */
export class RunActions {
  readonly #parts: RunActionsOptions
  #turn = 0

  constructor(parts: RunActionsOptions) {
    this.#parts = parts
  }

  async answer(
    id: string,
    { step, value: given }: { readonly step: string; readonly value: Json },
    ctx: CallContext
  ): Promise<void> {
    const { loader, reading } = this.#parts
    const { status } = await reading.record(id, ctx)
    const waiting = status === 'running' ? waitingIn(await loader.history(id, ctx)) : []
    const asked = waiting.find(item => item.step === step && item.ask !== undefined)
    if (!asked) {
      const asking = waiting.filter(item => item.ask).map(item => item.step)
      const about = { reason: 'waits for no answer', value: step.slice(0, 200) }
      throw notAllowed('step', `"${step.slice(0, 200)}" waits for no answer`, asking, about)
    }
    checkSize('value', given)
    const value = valueOf(asked.ask!, given)
    await checkAnswer(asked.ask!, value)
    const news: ChangeNotice = { kind: 'answer', step, value, at: Date.now(), by: ctx.principal.id }
    const isLate = (await this.#put(answerKey(id, step), news, ctx)) || (await this.#isAnswered(id, asked, value, ctx))
    // an earlier caller can have crashed before it woke the run
    await this.#notify(id, ctx)
    if (isLate) throw invalid('step', 'is already answered, or its time is over', { value: step })
  }

  /** An answer leaves the inbox together with its log entry. So the log shows an answer that was taken before this one was stored. */
  async #isAnswered(id: string, { step, since }: Waiting, value: Json, ctx: CallContext): Promise<boolean> {
    const past = (await this.#parts.loader.history(id, ctx)).steps.get(step)
    if (past?.last.t === 'asleep' && past.last.at === since) return false
    return !(past?.woken?.by === 'answer' && isDeepStrictEqual(past.woken.data, value))
  }

  /** The id and record of the run, or of the last one that continues it as new. */
  async #last(id: string, ctx: CallContext): Promise<{ readonly id: string; readonly record: RunRecord }> {
    for (let last = id; ; ) {
      const record = await this.#parts.reading.record(last, ctx)
      if (record.nextRun === undefined) return { id: last, record }
      last = record.nextRun
    }
  }

  /** Hands on a notice that came while the run continued as new. */
  async #handOn(id: string, ctx: CallContext): Promise<void> {
    const { store, loader, reading } = this.#parts
    const { nextRun } = await reading.record(id, ctx)
    if (nextRun === undefined) return
    const { id: last } = await this.#last(nextRun, ctx)
    if ((await moveLetters(store, id, last, await loader.news(id, ctx), ctx)) > 0) await this.#notify(last, ctx)
  }

  async signal(
    given: string,
    { name, data: sent }: { readonly name: string; readonly data: Json },
    ctx: CallContext
  ): Promise<void> {
    if (!/^[\w.:-]{1,100}$/.test(name))
      throw invalid('name', 'must be 1 to 100 letters, digits, or _ . : -', { value: name.slice(0, 100) })
    checkSize('data', sent)
    const { id, record } = await this.#last(given, ctx)
    if (record.status !== 'running') throw invalid('workflow_id', 'has ended', { value: id })
    const data = await this.#parts.interfaces.checked(record, name, sent, ctx)
    const { events } = await this.#parts.loader.history(id, ctx)
    await this.#checkInbox(id, events.length, ctx)
    const at = Date.now()
    // events are taken in the order of their keys
    const turn = `${at.toString(36)}-${String(this.#turn++).padStart(TURN_DIGITS, '0')}`
    await this.#put(`${id}/e/${turn}-${crypto.randomUUID()}`, { kind: 'event', name, data, at }, ctx)
    await this.#notify(id, ctx)
    await this.#handOn(id, ctx)
  }

  /** Throws RUN_INBOX_FULL. `taken`: events that the run has, and no step has taken. */
  async #checkInbox(id: string, taken: number, ctx: CallContext): Promise<void> {
    let [count, bytes] = [taken, 0]
    for (let cursor: string | undefined; count < MOST_EVENTS && bytes < MOST_WAITING; ) {
      const query = { from: `${id}/e/`, to: `${id}/e0`, limit: INBOX_PAGE, ...(cursor === undefined ? {} : { cursor }) }
      const { records, next } = await this.#parts.store.range(INBOX, query, ctx)
      count += records.length
      for (const { value } of records) bytes += JSON.stringify(value).length
      if (next === undefined) break
      cursor = next
    }
    if (count >= MOST_EVENTS) throw inboxFull(id, `${MOST_EVENTS} events`)
    if (bytes >= MOST_WAITING) throw inboxFull(id, `${MOST_WAITING} bytes of events`)
  }

  async cancel(id: string, ctx: CallContext): Promise<Run> {
    const { reading } = this.#parts
    const { status } = await reading.record(id, ctx)
    if (status !== 'running') throw invalid('workflow_id', `has ended: ${status}`, { value: id })
    const news: ChangeNotice = { kind: 'cancel', at: Date.now(), by: ctx.principal.id }
    await this.#put(cancelKey(id), news, ctx)
    // without its group, so that the cancellation does not wait for a free slot
    await this.#notify(id, ctx, () => this.#parts.queue.put({ id, due: Date.now() }, { claim: false }, ctx))
    return reading.settled(id, CANCEL_MS, ctx)
  }

  /** Requests the cancellation of runs. Those that have ended meanwhile stay as they are. */
  async cancelAll(ids: readonly string[], ctx: CallContext): Promise<void> {
    const { store, queue } = this.#parts
    const news: ChangeNotice = { kind: 'cancel', at: Date.now(), by: ctx.principal.id }
    const value = news as unknown as Json
    await store.batch(
      ids.map(id => ({ op: 'put', collection: INBOX, key: cancelKey(id), value })),
      {},
      ctx
    )
    await Promise.all(ids.map(id => this.#notify(id, ctx, () => queue.put({ id, due: Date.now() }, { claim: false }, ctx))))
  }

  /** Requests that a run pauses at the end of its running steps. */
  async requestPause(id: string, ctx: CallContext): Promise<void> {
    await this.#put(pauseKey(id), { kind: 'pause', at: Date.now(), by: ctx.principal.id }, ctx)
    await this.#notify(id, ctx)
  }

  /** Deletes a dead letter. */
  async drop(id: string, ctx: CallContext): Promise<void> {
    const { store, reading } = this.#parts
    const { record, version } = await reading.stored(id, ctx)
    if (!isDead(record)) throw invalid('workflow_id', 'is not a dead letter', { value: id })
    const ops = await removalOf(store, id, ctx)
    const whole = ops.map(op => (op.op === 'delete' && op.collection === RUNS ? { ...op, ifVersion: version } : op))
    try {
      await store.batch(whole, {}, ctx)
    } catch (error) {
      // it is retried or dropped meanwhile
      throw codeOf(error) === 'STORE_CONFLICT' ? invalid('workflow_id', 'is not a dead letter', { value: id }) : error
    }
    const before = { workflow: record.workflow, failure_code: record.error?.code }
    this.#parts.publish({ type: 'workflow_run_dropped', subject: `workflows/runs/${id}`, before }, ctx)
  }

  /** Puts a notice into the inbox. Returns whether the key already exists. */
  async #put(key: string, news: ChangeNotice, ctx: CallContext): Promise<boolean> {
    try {
      await this.#parts.store.batch(
        [{ op: 'put', collection: INBOX, key, value: news as unknown as Json, ifVersion: 0 }],
        {},
        ctx
      )
      return false
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
      return true
    }
  }

  /** Notifies the worker that executes the run, or wakes the run. A lost message does no harm: each renewal of a claim also reads the inbox. */
  async #notify(
    id: string,
    ctx: CallContext,
    wake: () => Promise<unknown> = () => this.#parts.queue.wake(id, ctx)
  ): Promise<void> {
    const { worker, peers } = this.#parts
    if (await worker.news(id)) return
    await wake()
    // the message only saves time: the next renewal of the claim finds the notice, too
    await peers?.broadcast(NEWS, { run: id }, ctx).catch(() => {})
  }
}

function checkSize(field: string, value: Json): void {
  if (sizeUpTo(value, LARGEST) > LARGEST) throw invalid(field, `must be at most ${LARGEST} bytes of JSON`)
}

/** The names of the branches are valid answers to an approval. */
const valueOf = ({ kind }: Question, given: Json): Json =>
  kind === 'approval' && (given === 'approved' || given === 'rejected') ? given === 'approved' : given

/** Throws INVALID_VALUE if the value is not a valid answer. */
async function checkAnswer({ kind, choices = [], schema }: Question, value: Json): Promise<void> {
  if (kind === 'approval' && typeof value !== 'boolean')
    throw invalid('value', 'must be true or false, or "approved" or "rejected"')
  if (kind === 'choice' && !choices.includes(value as string)) throw notAllowed('value', 'must be one of the choices', choices)
  if (kind !== 'input' || typeof schema !== 'object') return
  const [problem] = (await toolSchema(schema, { once: true })).check(value, 'first')
  if (problem) throw invalid(problem.path === '' ? 'value' : `value.${problem.path}`, problem.message)
}
