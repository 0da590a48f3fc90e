/** One telling at a time; what changes meanwhile is told in the next one, however often it did. */
export class Telling {
  readonly #tell: () => Promise<void>
  #running: Promise<void> | undefined
  #isStale = false
  #isSilent = true
  #toldAt = Date.now()

  constructor(tell: () => Promise<void>) {
    this.#tell = tell
  }

  /** Before `begin` and after `end` nothing is told. */
  get isSilent(): boolean {
    return this.#isSilent
  }
  /** Unix milliseconds. */
  get toldAt(): number {
    return this.#toldAt
  }

  begin(): Promise<void> {
    this.#isSilent = false
    return this.tell()
  }

  /** Answers when what is true now has been told. */
  tell(): Promise<void> {
    if (this.#isSilent) return Promise.resolve()
    this.#isStale = this.#running !== undefined
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Answers when nothing is being told any more. */
  async end(): Promise<void> {
    this.#isSilent = true
    await this.#running
  }

  async #run(): Promise<void> {
    do {
      this.#isStale = false
      this.#toldAt = Date.now()
      await this.#tell()
    } while (this.#isStale && !this.#isSilent)
  }
}
