import { setTimeout as pause } from 'node:timers/promises'

/** Rounds in which all workers are asked to release permits that they keep but do not need. Callers that wait for a round share it. */
export class ReclaimRounds {
  readonly #reclaim: (names: readonly string[]) => Promise<unknown>
  readonly #pauseMs: number
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<unknown> | undefined
  #wanted = new Set<string>()

  /** `reclaim` settles in limited time; `pauseMs`: between two rounds. */
  constructor(reclaim: (names: readonly string[]) => Promise<unknown>, pauseMs: number) {
    this.#reclaim = reclaim
    this.#pauseMs = pauseMs
  }

  /** Resolves after a round that has begun after this call. */
  async ask(name: string): Promise<void> {
    this.#wanted.add(name)
    await (this.#next ??= this.#last.then(() => this.#round()))
  }

  /** One round for all names that are wanted now. */
  #round(): Promise<unknown> {
    const names = [...this.#wanted]
    this.#wanted.clear()
    this.#next = undefined
    const round = this.#reclaim(names)
    this.#last = round.catch(() => {}).then(() => pause(this.#pauseMs, undefined, { ref: false }))
    return round
  }
}
