import { setTimeout as pause } from 'node:timers/promises'

/** Between two rounds of questions: who is refused a thousand times costs no thousand rounds. */
const PAUSE_MS = 5

/** Places that workers share, by name. `ask` asks one of them to leave those that it only keeps; it ends in time, whatever that one does. */
export class SharedSemaphore<W> {
  readonly #ask: (worker: W, name: string) => Promise<unknown>
  readonly #held = new Map<string, Map<W, number>>()
  #last: Promise<unknown> = Promise.resolve()
  #next: Promise<unknown> | undefined
  #wanted = new Set<string>()

  constructor(ask: (worker: W, name: string) => Promise<unknown>) {
    this.#ask = ask
  }

  /** Takes one of `limit`. Nobody is refused before all who hold some have been asked: what they are just leaving is free then. */
  async enter(worker: W, name: string, limit: number): Promise<boolean> {
    if (this.#take(worker, name, limit)) return true
    this.#wanted.add(name)
    await (this.#next ??= this.#last.then(() => this.#round()))
    return this.#take(worker, name, limit)
  }

  leave(worker: W, name: string, count = 1): void {
    const holders = this.#held.get(name)
    const rest = (holders?.get(worker) ?? 0) - count
    if (rest > 0) holders?.set(worker, rest)
    else if (holders?.delete(worker) && holders.size === 0) this.#held.delete(name)
  }

  /** It has ended: what it held is free. */
  forget(worker: W): void {
    for (const name of this.#held.keys()) this.leave(worker, name, Number.POSITIVE_INFINITY)
  }

  #take(worker: W, name: string, limit: number): boolean {
    const holders = this.#held.get(name) ?? new Map<W, number>()
    let sum = 0
    for (const count of holders.values()) sum += count
    if (sum >= limit) return false
    this.#held.set(name, holders.set(worker, (holders.get(worker) ?? 0) + 1))
    return true
  }

  /** One for all names that are wanted by now. */
  #round(): Promise<unknown> {
    const names = [...this.#wanted]
    this.#wanted.clear()
    this.#next = undefined
    const asked = names.flatMap(name => [...(this.#held.get(name)?.keys() ?? [])].map(worker => this.#ask(worker, name)))
    const round = Promise.all(asked)
    this.#last = round.then(() => pause(PAUSE_MS))
    return round
  }
}
