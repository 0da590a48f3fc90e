import { oneLine } from '@svc/plugin-kit'
import { messageOf } from '@svc/core'
import type { Json, Question } from '@svc/core/contracts'
import type { Screen } from './screen.ts'
import { answerOf, answersTo } from './values.ts'

interface AskingParts {
  readonly screen: Screen
  readonly answer: (step: string, value: Json) => Promise<void>
  /** The person has gone. */
  readonly leave: () => void
  readonly signal: AbortSignal
}

/** The questions of a run, asked one after the other while it goes on. */
export class Asking {
  readonly #parts: AskingParts
  readonly #open = new Map<string, AbortController>()
  #last = Promise.resolve()

  constructor(parts: AskingParts) {
    this.#parts = parts
  }

  put(step: string, question: Question): void {
    const dropped = new AbortController()
    this.#open.set(step, dropped)
    const signal = AbortSignal.any([this.#parts.signal, dropped.signal])
    this.#last = this.#last.then(() => this.#settle(step, question, signal))
  }

  /** It has been answered elsewhere, or its time has run out. */
  drop(step: string): void {
    this.#open.get(step)?.abort()
    this.#open.delete(step)
  }

  /** Nothing is asked any more. */
  end(): void {
    for (const step of this.#open.keys()) this.drop(step)
  }

  /** Resolves when no question stands any more. */
  get ended(): Promise<void> {
    return this.#last
  }

  async #settle(step: string, question: Question, signal: AbortSignal): Promise<void> {
    const { screen, leave } = this.#parts
    if (!signal.aborted) screen.line({ text: `? ${step}  ${oneLine(question.message, 1_000)}`, tone: 'yellow' })
    for (;;) {
      const typed = signal.aborted ? undefined : await screen.question(`  ${step}: ${answersTo(question)}: `, signal)
      if (typed === undefined) return signal.aborted ? undefined : leave()
      const value = answerOf(question, typed)
      if (value !== undefined && (await this.#isTaken(step, value))) return
    }
  }

  /** Whether the question is settled; one whose answer does not fit is asked again. */
  async #isTaken(step: string, value: Json): Promise<boolean> {
    const { screen, answer, signal } = this.#parts
    try {
      await answer(step, value)
      return true
    } catch (error) {
      screen.line({ text: `  ${oneLine(messageOf(error), 400)}`, tone: 'red' })
      const { details } = Object(error) as { details?: { readonly field?: unknown } }
      return signal.aborted || !String(details?.field).startsWith('value')
    }
  }
}
