import { randomUUID } from 'node:crypto'
import type { Json, ModelEvent } from '@svc/core/contracts'
import { malformed, tooLarge } from './failure.ts'

/** A piece of a tool call, as it comes. What is absent comes in another piece. */
export interface ToolCallPiece {
  readonly id?: string
  readonly tool?: string
  /** JSON text, or a part of it. */
  readonly text?: string
  readonly providerData?: Json
}

interface Building {
  readonly index: number
  id: string
  tool: string
  text: string
  providerData?: Json
}

const MOST_CALLS = 128
const MOST_CHARACTERS = 8 * 1024 * 1024

/** Puts tool calls together that come in pieces, several at once, by their index. */
export class ToolCalls {
  readonly #provider: string
  readonly #calls: Building[] = []
  #size = 0

  constructor(provider: string) {
    this.#provider = provider
  }

  get count(): number {
    return this.#calls.length
  }

  /**
   * Takes a piece. Without an index it belongs to the last call, unless it has another id, or names a tool anew. A piece with another id and a tool of its
   * own is another call though it has the same index: servers that send whole calls count all of them as 0. Throws MODEL_FAILED.
   */
  add(index: number | undefined, piece: ToolCallPiece): void {
    const before = index === undefined ? this.#calls.at(-1) : this.#calls.findLast(call => call.index === index)
    const call = before && !isAnother(before, piece, index) ? before : this.#begin(index ?? this.#calls.length)
    if (piece.id) call.id ||= piece.id
    if (piece.tool) call.tool ||= piece.tool
    if (piece.text) call.text += piece.text
    if (piece.providerData !== undefined) call.providerData = piece.providerData
    this.#size += piece.text?.length ?? 0
    if (this.#size > MOST_CHARACTERS) throw tooLarge(this.#provider, 'arguments of a tool call that never end')
  }

  /** Emits the calls in the order of their index, each with an id of its own. Throws MODEL_FAILED where one names no tool. */
  emit(emit: (event: ModelEvent) => void): void {
    const seen = new Set<string>()
    for (const call of this.#calls.toSorted((a, b) => a.index - b.index)) {
      const id = call.id !== '' && !seen.has(call.id) ? call.id : `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`
      seen.add(id)
      const { tool, text, providerData } = call
      if (tool === '') throw malformed(this.#provider)
      emit({ type: 'tool_call', id, tool, ...parseArguments(text), ...(providerData === undefined ? {} : { providerData }) })
    }
  }

  #begin(index: number): Building {
    if (this.#calls.length >= MOST_CALLS) throw tooLarge(this.#provider, `more than ${MOST_CALLS} tool calls at once`)
    const call: Building = { index, id: '', tool: '', text: '' }
    this.#calls.push(call)
    return call
  }
}

function isAnother(before: Building, { id, tool }: ToolCallPiece, index: number | undefined): boolean {
  const [otherId, ownTool] = [!!id && before.id !== '' && id !== before.id, !!tool && before.tool !== '']
  if (index !== undefined) return otherId && ownTool
  return id ? otherId : ownTool
}

/** The arguments that a model wrote: `{}` for nothing at all, `invalid` with the text where it is no JSON object. */
export function parseArguments(text: string): { arguments: { readonly [name: string]: Json | undefined }; invalid?: string } {
  if (text.trim() === '') return { arguments: {} }
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { arguments: value as { [name: string]: Json } }
  } catch {
    // `invalid` reports it
  }
  return { arguments: {}, invalid: text }
}
