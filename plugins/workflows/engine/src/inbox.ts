import { codeOf, type CallContext } from '@svc/core'
import type { Json, Store } from '@svc/core/contracts'
import { cancelled } from './errors.ts'
import type { Execution } from './execution.ts'
import { waitingIn } from './history.ts'
import { INBOX, type ChangeNotice } from './space.ts'
import type { Woken } from './waits.ts'

/** A notice and its key in the inbox. */
export interface Letter {
  readonly key: string
  readonly news: ChangeNotice
}

export interface InboxOptions {
  readonly store: Store
  readonly execution: Execution
  readonly letters: () => Promise<readonly Letter[]>
  /** Fails the run. */
  readonly fail: (error: Error) => void
  /** Pauses the run at the end of its running steps. */
  readonly pause: () => void
  readonly ctx: CallContext
}

/** Inbox key of the answer to a step. A step has only one key, so the first answer wins. */
export const answerKey = (run: string, step: string) => `${run}/a/${step}`
export const cancelKey = (run: string) => `${run}/c`
export const pauseKey = (run: string) => `${run}/p`

/** Moves the notices of a run that has continued as new to the next one: events, a cancellation and a pause. */
export async function moveLetters(
  store: Store,
  from: string,
  to: string,
  letters: readonly Letter[],
  ctx: CallContext
): Promise<number> {
  let count = 0
  for (const { key, news } of letters) {
    if (news.kind === 'answer' || news.kind === 'expired') continue
    const moved = `${to}${key.slice(from.length)}`
    const remove = { op: 'delete', collection: INBOX, key, ifVersion: 1 } as const
    const put = { op: 'put', collection: INBOX, key: moved, value: news as unknown as Json, ifVersion: 0 } as const
    try {
      await store.batch([remove, put], {}, ctx)
      count += 1
    } catch (error) {
      // another caller has moved it, or has sent the same notice to the next run
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
    }
  }
  return count
}

const AGAIN_MS = 1_000

/** The inbox of a run. A notice moves from the inbox to the log in one batch, so it is neither lost nor taken twice. */
export class Inbox {
  readonly #parts: InboxOptions
  /** Notices that were taken, and are possibly not deleted yet. */
  readonly #taken = new Set<string>()

  constructor(parts: InboxOptions) {
    this.#parts = parts
  }

  take(letters: readonly Letter[]): void {
    const isCancelled = letters.some(({ news }) => news.kind === 'cancel')
    for (const { key, news } of letters) {
      // a cancelled run is not paused: it runs its compensations
      if (news.kind === 'pause' && isCancelled) continue
      const id = `${key}@${news.at}`
      if (!this.#taken.has(id)) this.#one(key, news)
      this.#taken.add(id)
    }
    // store the rest, too; the journal handles an error by ending the run
    void this.#parts.execution.journal.stored().catch(() => {})
  }

  /** A cancel notice stays until the run has ended, and a pause notice until it is paused, so that a worker that takes over sees it. */
  #one(key: string, news: ChangeNotice): void {
    const { execution, fail, pause } = this.#parts
    if (news.kind === 'cancel') return fail(cancelled())
    if (news.kind === 'pause') return pause()
    execution.journal.with({ op: 'delete', collection: INBOX, key })
    if (news.kind === 'event') this.#event(key, news)
    else this.#answer(news.step, news.kind === 'answer' ? { by: 'answer', data: news.value } : { by: 'time' })
  }

  /** Wakes all steps that wait for the event. Without such a step, the event is stored after earlier events of its name. */
  #event(id: string, { name, data, at }: Extract<ChangeNotice, { readonly kind: 'event' }>): void {
    const { execution } = this.#parts
    const isFirst = !execution.history.events.some(event => event.name === name)
    const waiting = isFirst ? waitingIn(execution.history).filter(({ event }) => event === name) : []
    for (const { step } of waiting) this.#wake(step, { by: 'event', data })
    if (waiting.length === 0) execution.journal.add({ t: 'event', at, id, name, data })
  }

  #answer(step: string, woken: Woken): void {
    if (waitingIn(this.#parts.execution.history).some(item => item.step === step)) this.#wake(step, woken)
  }

  #wake(step: string, woken: Woken): void {
    const { journal, waits } = this.#parts.execution
    journal.add({ t: 'woken', s: step, at: Date.now(), ...woken })
    waits.wake(step, woken)
  }

  /** Ends a wait whose time is over, unless an answer was accepted just before. */
  async onTime(step: string): Promise<void> {
    const { store, execution, letters, ctx } = this.#parts
    const last = execution.history.steps.get(step)?.last
    if (last?.t !== 'asleep' || !last.ask) return execution.waits.wake(step, { by: 'time' })
    const value = { kind: 'expired' as const, step, at: Date.now() }
    const key = answerKey(execution.id, step)
    try {
      await store.batch([{ op: 'put', collection: INBOX, key, value: value as Json, ifVersion: 0 }], {}, ctx)
      if (!execution.isStopped) this.take([{ key, news: value }])
    } catch (error) {
      await this.#late(step, error, letters)
    }
  }

  async #late(step: string, error: unknown, letters: InboxOptions['letters']): Promise<void> {
    if (codeOf(error) === 'STORE_CONFLICT') {
      const found = await letters().catch(() => [])
      if (!this.#parts.execution.isStopped) this.take(found)
      if (found.length > 0) return
    }
    setTimeout(() => {
      const { waits, isStopped } = this.#parts.execution
      if (!isStopped && waits.has(step)) void this.onTime(step)
    }, AGAIN_MS).unref()
  }
}
