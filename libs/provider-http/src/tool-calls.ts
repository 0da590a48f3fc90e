import { randomUUID } from 'node:crypto'
import type { Json, ModelEvent } from '@svc/core/contracts'
import { malformed, tooLarge } from './failure.ts'

/** A piece of a tool call. Other pieces bring the absent fields. */
export interface ToolCallPiece {
  readonly id?: string
  readonly tool?: string
  /** JSON text of the arguments, or a part of it. */
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

/** Assembles tool calls from pieces, by their index. The pieces of several calls can be mixed. */
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
   * Adds a piece. Without an index it belongs to the last call, unless it has another id or names a tool again. A piece with another id and its own tool
   * starts a new call, even with the same index: servers that send whole calls use index 0 for all. Throws MODEL_FAILED.
   */
  add(index: number | undefined, piece: ToolCallPiece): void {
    const before = index === undefined ? this.#calls.at(-1) : this.#calls.findLast(call => call.index === index)
    const call = before && !isAnother(before, piece, index) ? before : this.#begin(index ?? this.#calls.length)
    if (piece.id) call.id ||= piece.id
    if (piece.tool) call.tool ||= piece.tool
    if (piece.text) call.text += piece.text
    if (piece.providerData !== undefined) call.providerData = piece.providerData
    this.#size += piece.text?.length ?? 0
    if (this.#size > MOST_CHARACTERS)
      throw tooLarge(this.#provider, `tool call arguments of more than ${MOST_CHARACTERS} characters`)
  }

  /** Emits the calls in the order of their index, each with a unique id. Throws MODEL_FAILED if a call names no tool. */
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
    if (this.#calls.length >= MOST_CALLS) throw tooLarge(this.#provider, `more than ${MOST_CALLS} tool calls in one answer`)
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

/** Parses the arguments that a model wrote. Empty text gives `{}`. Text that is not a JSON object is returned as `invalid`. */
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
