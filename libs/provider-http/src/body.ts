/** Gathers a body up to a limit; what is beyond is dropped, and `over` says so. */
export class Body {
  readonly #limit: number
  #chunks: Uint8Array[] = []
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get over(): boolean {
    return this.#size > this.#limit
  }

  push(chunk: Uint8Array): void {
    if (this.over) return
    this.#size += chunk.length
    this.#chunks.push(this.over ? chunk.subarray(0, Math.max(0, chunk.length - (this.#size - this.#limit))) : chunk)
  }

  /** Parsed where it is JSON, else the text. */
  value(): unknown {
    const text = Buffer.concat(this.#chunks).toString('utf8')
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }
}
