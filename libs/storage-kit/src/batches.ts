/** Sends what waits while a batch is on its way as the next batch. */
export class Batches<T, R> {
  readonly #send: (items: readonly T[]) => Promise<readonly R[]>
  readonly #most: number
  #waiting: { readonly item: T; readonly answer: PromiseWithResolvers<R> }[] = []
  #isSending = false

  /** `send` returns a result for each item. */
  constructor(send: (items: readonly T[]) => Promise<readonly R[]>, most = 500) {
    this.#send = send
    this.#most = most
  }

  add(item: T): Promise<R> {
    const answer = Promise.withResolvers<R>()
    this.#waiting.push({ item, answer })
    if (!this.#isSending) {
      this.#isSending = true
      queueMicrotask(() => void this.#flow())
    }
    return answer.promise
  }

  async #flow(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#most)
      try {
        const results = await this.#send(batch.map(({ item }) => item))
        batch.forEach(({ answer }, at) => answer.resolve(results[at]!))
      } catch (error) {
        for (const { answer } of batch) answer.reject(error as Error)
      }
    }
    this.#isSending = false
  }
}
