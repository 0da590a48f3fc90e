import { createHash } from 'node:crypto'
import type { ToolCallPart } from '@svc/core/contracts'

/** Idempotency keys of the tool calls of a turn: the n-th call of a tool with the same arguments has the same key each time the turn is run. */
export class CallKeys {
  readonly #turn: string
  readonly #counts = new Map<string, number>()

  constructor(turn: string) {
    this.#turn = turn
  }

  of({ tool, arguments: args }: ToolCallPart): string {
    const what = `${tool}:${createHash('sha256').update(JSON.stringify(args)).digest('base64url')}`
    const count = (this.#counts.get(what) ?? 0) + 1
    this.#counts.set(what, count)
    return `${this.#turn}:${what}:${count}`
  }
}
