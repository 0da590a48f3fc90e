import type { Json } from '@svc/core/contracts'

type Detail = { readonly [name: string]: Json | undefined }

const MOST_CHARACTERS = 1024 * 1024
/** Fields that come in pieces. */
const GROWING = ['text', 'summary', 'data'] as const

/** Puts blocks of reasoning together that come in pieces, to be given back as they were. */
export class ReasoningDetails {
  readonly #blocks: Detail[] = []
  #size = 0

  add(pieces: readonly Json[]): void {
    for (const piece of pieces) if (isDetail(piece)) this.#take(piece)
  }

  /** The blocks; `undefined` where there are none, or more than can be kept. */
  gathered(): Detail[] | undefined {
    return this.#blocks.length === 0 || this.#size > MOST_CHARACTERS ? undefined : this.#blocks
  }

  #take(piece: Detail): void {
    for (const name of GROWING) this.#size += textOf(piece[name]).length
    if (this.#size > MOST_CHARACTERS) return
    const last = this.#blocks.at(-1)
    const goesOn =
      last !== undefined &&
      last.type === piece.type &&
      last.index === piece.index &&
      (piece.id ?? last.id) === (last.id ?? piece.id)
    if (goesOn) this.#blocks[this.#blocks.length - 1] = joined(last, piece)
    else this.#blocks.push(piece)
  }
}

function joined(last: Detail, piece: Detail): Detail {
  const both: Record<string, Json | undefined> = { ...last }
  for (const [name, value] of Object.entries(piece)) if (value !== null && value !== undefined) both[name] = value
  for (const name of GROWING)
    if (typeof last[name] === 'string' && typeof piece[name] === 'string') both[name] = last[name] + piece[name]
  return both
}

const textOf = (value: Json | undefined) => (typeof value === 'string' ? value : '')
const isDetail = (value: Json): value is Detail => typeof value === 'object' && value !== null && !Array.isArray(value)
