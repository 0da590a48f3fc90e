/** A server that says again and again that its tools are others is asked no more often. */
const PAUSE_MS = 1_000

/** When the tools of a server are read: once a connection, and again when it says that they are others now. */
export class Listing {
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

  /** Answers when the tools of this connection are known; throws why they are not: then the next call asks again. */
  fresh(): Promise<void> {
    this.#current ??= this.#run()
    return this.#current
  }

  /** The same, for as long as somebody waits for it. */
  async known(signal: AbortSignal): Promise<void> {
    if (this.#isKnown) return
    const left = Promise.withResolvers<never>()
    const leave = () => left.reject(signal.reason)
    signal.throwIfAborted()
    signal.addEventListener('abort', leave, { once: true })
    try {
      await Promise.race([this.fresh(), left.promise])
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  /** They are others now. Calls wait for the new ones, but for those of a server that says so all the time. */
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
      this.#current.catch(() => {}) // who calls hears of it
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
