import { pathOf } from '@svc/core'
import type { WorkflowProblem } from '@svc/core/contracts'
import type { Wrong } from './schemas.ts'

/** More are counted, but not told. */
const MOST = 1_000
const LONGEST = 500

/** Keeps what is wrong. */
export class Notes {
  readonly #lineOf: ((keys: readonly string[]) => number) | undefined
  readonly #problems: WorkflowProblem[] = []
  #more = 0

  constructor(lineOf?: (keys: readonly string[]) => number) {
    this.#lineOf = lineOf
  }

  add(keys: readonly string[], message: string, hint?: string): void {
    this.note({ keys, message, ...(hint === undefined ? {} : { hint }) })
  }

  note({ keys, message, hint, line = this.#lineOf?.(keys) }: Wrong & { readonly line?: number }): void {
    if (this.#problems.length >= MOST) return void (this.#more += 1)
    const about = { ...(line === undefined ? {} : { line }), ...(hint === undefined ? {} : { hint: cut(hint) }) }
    this.#problems.push({ message: cut(message), path: pathOf(keys), ...about })
  }

  /** All of them, as they stand in the text. */
  get problems(): readonly WorkflowProblem[] {
    const sorted = this.#problems.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    return this.#more === 0 ? sorted : [...sorted, { message: `${this.#more} more problems are not told`, path: '' }]
  }
}

const cut = (text: string) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text)
