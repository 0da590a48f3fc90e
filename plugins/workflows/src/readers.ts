import type { RunEvent } from '@svc/core/contracts'

/** Those who read along, in this process: they are told that there is something new, and read the log for it. */
export class Readers {
  readonly #readers = new Map<string, Set<(event: RunEvent | undefined, isOver: boolean) => void>>()

  /** `news` is called with each change; with an event where that is in no log, and with whether the run has ended. */
  add(run: string, news: (event: RunEvent | undefined, isOver: boolean) => void): Disposable {
    const those = this.#readers.get(run) ?? new Set()
    this.#readers.set(run, those.add(news))
    return {
      [Symbol.dispose]: () => {
        those.delete(news)
        if (those.size === 0) this.#readers.delete(run)
      },
    }
  }

  tell(run: string, event: RunEvent | undefined, isOver: boolean): void {
    for (const news of this.#readers.get(run) ?? []) news(event, isOver)
  }
}
