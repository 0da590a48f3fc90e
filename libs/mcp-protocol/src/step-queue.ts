import type { ToolStep } from '@svc/core/contracts'

/** Above this many unread steps, the oldest progress is dropped. */
const MAX_STEPS = 256

/** The steps of a call that its reader has not read yet. It ends with a result, a question or a failure. */
export class StepQueue implements AsyncIterable<ToolStep>, AsyncIterator<ToolStep> {
  readonly #steps: ToolStep[] = []
  #failure: Error | undefined
  /** The reader has read the last step. */
  #isOver = false
  #reader: PromiseWithResolvers<IteratorResult<ToolStep>> | undefined;

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Returns the next step; throws the failure. Only one reader waits at a time. */
  next(): Promise<IteratorResult<ToolStep>> {
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined })
    const value = this.#steps.shift()
    if (value !== undefined) return Promise.resolve(this.#read(value))
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    this.#reader = Promise.withResolvers()
    return this.#reader.promise
  }

  push(step: ToolStep): void {
    if (this.#reader !== undefined) {
      this.#reader.resolve(this.#read(step))
      this.#reader = undefined
      return
    }
    if (this.#steps.length === MAX_STEPS) {
      const oldest = this.#steps.findIndex(one => one.type === 'progress' || one.type === 'log')
      this.#steps.splice(Math.max(0, oldest), 1)
    }
    this.#steps.push(step)
  }

  /** Ends the steps with a failure, if there is none yet. */
  fail(failure: Error): void {
    this.#failure ??= failure
    this.#reader?.reject(this.#failure)
    this.#reader = undefined
  }

  /** Goes on after a question. */
  reopen(): void {
    this.#isOver = false
  }

  #read(value: ToolStep): IteratorResult<ToolStep> {
    this.#isOver = value.type === 'result' || value.type === 'input'
    return { done: false, value }
  }
}
