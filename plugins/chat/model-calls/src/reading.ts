import type { CallContext } from '@svc/core'
import type { ModelEvent } from '@svc/core/contracts'
import { callTimeout, modelSilent } from './errors.ts'
/** A piece of work with a time limit. The clock calls `checkTime` every 20 ms. */
interface Timed {
  checkTime(now: number): void
}

/** One coarse timer for all running model calls. A timer for each wait would mean a timer for each token. */
export interface Clock {
  watch(timed: Timed): void
  forget(timed: Timed): void
}

const STEP_MS = 20

export function createClock(): Clock {
  const timed = new Set<Timed>()
  let timer: NodeJS.Timeout | undefined
  const checkAll = () => {
    const now = performance.now()
    for (const item of timed) item.checkTime(now)
    if (timed.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    watch(item) {
      timed.add(item)
      timer ??= setInterval(checkAll, STEP_MS).unref()
    },
    forget: item => void timed.delete(item),
  }
}

/** Time limits of a model call. */
export interface CallLimits {
  /** Milliseconds to its first event. */
  readonly firstMs: number
  /** Milliseconds between events. */
  readonly betweenMs: number
  /** `until`: end of the call or its turn, as `performance.now()`. `timeoutMs`: that time limit. */
  readonly until: number
  readonly timeoutMs: number
}

/** A reader that pauses for this long stalls the upstream. A later failure can be the effect of the pause. */
const STALL_MS = 1_000

type Step = IteratorResult<ModelEvent>
type Took = (step: Step) => void
type Failed = (error: unknown) => void

/** Opens the events of a model. */
export type OpenEvents = (ctx: CallContext) => AsyncIterable<ModelEvent>

/** Reads the events of one model call. It does not wait for a provider that ignores the abort. */
export class ModelReading implements Timed {
  readonly #name: string
  readonly #limits: CallLimits
  readonly #clock: Clock
  readonly #outer: AbortSignal
  readonly #ending = new AbortController()
  readonly #source: AsyncIterator<ModelEvent>
  #took: Took | undefined
  #failed: Failed | undefined
  #heard = 0
  #seen = 0
  #since = performance.now()
  /** Start of the reader's pause: no `next` call is open. */
  #left: number | undefined
  #stalled = false
  #over = false

  constructor(open: OpenEvents, name: string, limits: CallLimits, clock: Clock, ctx: CallContext) {
    this.#name = name
    this.#limits = limits
    this.#clock = clock
    this.#outer = ctx.signal
    this.#source = open({ ...ctx, signal: this.#ending.signal })[Symbol.asyncIterator]()
    ctx.signal.addEventListener('abort', this.#onAbort, { once: true })
    clock.watch(this)
  }

  /** True after the reader stalled the call. A later failure then does not count against the model. */
  get stalled(): boolean {
    return this.#stalled
  }

  /** Requests the next event. Calls either `took` or `failed`, once. */
  next(took: Took, failed: Failed): void {
    if (this.#ending.signal.aborted) return failed(this.#ending.signal.reason)
    this.#took = took
    this.#failed = failed
    this.#source.next().then(this.#onStep, this.#onFail)
  }

  /** Releases the provider and aborts a call that has not ended. */
  close(): void {
    this.#clock.forget(this)
    this.#outer.removeEventListener('abort', this.#onAbort)
    this.#took = this.#failed = undefined
    if (this.#over) return
    this.#over = true
    this.#ending.abort(new Error('the model call has ended'))
    // a provider that hangs in its own finally must not hold up the turn
    void this.#source.return?.().catch(() => {})
  }

  checkTime(now: number): void {
    const { firstMs, betweenMs, until, timeoutMs } = this.#limits
    const first = this.#heard === 0
    const limit = first ? firstMs : betweenMs
    const silent = this.#silence(now)
    if (now >= until) this.#stop(callTimeout(this.#name, timeoutMs, silent >= timeoutMs / 2 ? 'model' : 'turn'))
    else if (silent >= limit) this.#stop(modelSilent(this.#name, limit, first))
  }

  /** Milliseconds that the reader has waited for an event. Pauses of the reader do not count. */
  #silence(now: number): number {
    const isAwaited = this.#failed !== undefined
    const isStill = this.#heard === this.#seen
    if (isAwaited && isStill && this.#left === undefined) return now - this.#since
    if (isAwaited) this.#left = undefined
    else if (this.#left === undefined || !isStill) this.#left = now
    else if (now - this.#left >= STALL_MS) this.#stalled = true
    this.#seen = this.#heard
    this.#since = now
    return 0
  }

  readonly #onAbort = () => this.#stop(this.#outer.reason)

  readonly #onStep: Took = step => {
    this.#heard++
    if (step.done) this.#over = true
    const took = this.#took
    this.#took = this.#failed = undefined
    took?.(step)
  }

  readonly #onFail: Failed = error => {
    this.#over = true
    const failed = this.#failed
    this.#took = this.#failed = undefined
    failed?.(error)
  }

  #stop(reason: unknown) {
    const failed = this.#failed
    this.#took = this.#failed = undefined
    this.#ending.abort(reason)
    failed?.(reason)
  }
}

/** Reads the events of an answer that a plugin supplied. */
export function readReady(events: readonly ModelEvent[]): Pick<ModelReading, 'next' | 'close' | 'stalled'> {
  const source = events[Symbol.iterator]()
  return { next: took => took(source.next() as Step), close: () => undefined, stalled: false }
}
