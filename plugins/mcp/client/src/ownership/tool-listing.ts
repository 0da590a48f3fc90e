import { abortable } from '../connection/timing.ts'

/** Limit for servers that report changed tools all the time. */
const PAUSE_MS = 1_000

/** When to list the tools of a server: once a connection, and again when the server reports changed tools. */
export class ToolListing {
  readonly #list: () => Promise<void>
  #current: Promise<void> | undefined
  #isRunning = false
  #isKnown = false
  #isStale = false
  #begun = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(list: () => Promise<void>) {
    this.#list = list
  }

  get isKnown(): boolean {
    return this.#isKnown
  }

  /** Resolves when the tools of this connection are known. After an error, the next call lists them again. */
  current(): Promise<void> {
    this.#current ??= this.#run()
    return this.#current
  }

  /** As `current`, until the signal aborts. */
  async known(signal: AbortSignal): Promise<void> {
    if (this.#isKnown) return
    signal.throwIfAborted()
    await abortable(this.current(), signal)
  }

  /** The tools have changed. Calls wait for the new list, except while the limit for such reports delays it. */
  again(): void {
    if (this.#isRunning) this.#isStale = true
    else if (this.#timer === undefined) this.#next()
  }

  /** The connection is gone. */
  forget(): void {
    this.close()
    this.#current = undefined
    this.#isKnown = false
  }

  close(): void {
    this.#isStale = false
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #next() {
    const waitMs = this.#begun + PAUSE_MS - performance.now()
    const begin = () => {
      this.#timer = undefined
      this.#current = this.#run()
      this.#current.catch(() => {}) // the next call gets the error
    }
    if (waitMs <= 0) return begin()
    this.#timer = setTimeout(begin, waitMs).unref()
  }

  async #run(): Promise<void> {
    this.#begun = performance.now()
    this.#isRunning = true
    this.#isKnown = false
    try {
      await this.#list()
      this.#isKnown = true
    } catch (error) {
      this.#current = undefined
      throw error
    } finally {
      this.#isRunning = false
      if (this.#isStale) this.#next()
      this.#isStale = false
    }
  }
}
