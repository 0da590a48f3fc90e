import type { RunEvent } from '@svc/core/contracts'
import type { RunRecord } from './space.ts'

/** An event where that is in no log, and the record of a run that has ended here. */
type ChangeNotice = (event?: RunEvent, ended?: RunRecord) => void

/** Those who read along, in this process: they are told that there is something new, and read the log for it. */
export class Readers {
  readonly #readers = new Map<string, Set<ChangeNotice>>()

  /** `news` is called with each change. */
  add(run: string, news: ChangeNotice): Disposable {
    const those = this.#readers.get(run) ?? new Set()
    this.#readers.set(run, those.add(news))
    return {
      [Symbol.dispose]: () => {
        those.delete(news)
        if (those.size === 0) this.#readers.delete(run)
      },
    }
  }

  tell(run: string, ...what: Parameters<ChangeNotice>): void {
    for (const news of this.#readers.get(run) ?? []) news(...what)
  }
}
