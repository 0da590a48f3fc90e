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
  /** Characters of `text` that deltas have reported. -1: no delta yet. */
  reported: number
}

const MOST_CALLS = 128
const MOST_CHARACTERS = 8 * 1024 * 1024

type Emit = (event: ModelEvent) => void

/** Assembles tool calls from pieces, by their index. The pieces of several calls can be mixed. */
export class ToolCalls {
  readonly #provider: string
  readonly #deltas: boolean
  readonly #calls: Building[] = []
  readonly #ids = new Set<string>()
  #size = 0

  /** `deltas`: also emits `tool_call_delta` events, for a request with `toolCallDeltas`. */
  constructor(provider: string, { deltas = false }: { readonly deltas?: boolean } = {}) {
    this.#provider = provider
    this.#deltas = deltas
  }

  get count(): number {
    return this.#calls.length
  }

  /**
   * Adds a piece. Without an index it belongs to the last call, unless it has another id or names a tool again. A piece with another id and its own tool
   * starts a new call, even with the same index: servers that send whole calls use index 0 for all. With `emit`, it emits the delta of the piece. Throws
   * MODEL_FAILED.
   */
  add(index: number | undefined, piece: ToolCallPiece, emit?: Emit): void {
    const before = index === undefined ? this.#calls.at(-1) : this.#calls.findLast(call => call.index === index)
    const call = before && !isAnother(before, piece, index) ? before : this.#begin(index ?? this.#calls.length)
    join(call, piece)
    this.#size += piece.text?.length ?? 0
    if (this.#size > MOST_CHARACTERS)
      throw tooLarge(this.#provider, `tool call arguments of more than ${MOST_CHARACTERS} characters`)
    if (emit && this.#deltas) this.#report(call, emit)
  }

  /**
   * Emits the calls, each with a unique id: in the order of their index, or as they began if there are deltas. Throws MODEL_FAILED if a call
   * names no tool.
   */
  emit(emit: Emit): void {
    for (const call of this.#deltas ? this.#calls : this.#calls.toSorted((a, b) => a.index - b.index)) {
      const { tool, text, providerData } = call
      if (tool === '') throw malformed(this.#provider)
      if (this.#deltas && call.reported < text.length) this.#report(call, emit)
      const id = call.reported < 0 ? this.#idOf(call) : call.id
      emit({ type: 'tool_call', id, tool, ...parseArguments(text), ...(providerData === undefined ? {} : { providerData }) })
    }
  }

  /** Emits the text since the last delta. The first delta waits for the name of the tool. */
  #report(call: Building, emit: Emit): void {
    if (call.tool === '' || call.reported === call.text.length) return
    if (call.reported < 0) call.id = this.#idOf(call)
    const text = call.text.slice(Math.max(call.reported, 0))
    call.reported = call.text.length
    emit({ type: 'tool_call_delta', index: this.#calls.indexOf(call), id: call.id, tool: call.tool, text })
  }

  #idOf({ id }: Building): string {
    const unique = id !== '' && !this.#ids.has(id) ? id : `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`
    this.#ids.add(unique)
    return unique
  }

  #begin(index: number): Building {
    if (this.#calls.length >= MOST_CALLS) throw tooLarge(this.#provider, `more than ${MOST_CALLS} tool calls in one answer`)
    const call: Building = { index, id: '', tool: '', text: '', reported: -1 }
    this.#calls.push(call)
    return call
  }
}

function join(call: Building, { id, tool, text, providerData }: ToolCallPiece): void {
  // The deltas of a call have named its id.
  if (id && call.reported < 0) call.id ||= id
  if (tool) call.tool ||= tool
  if (text) call.text += text
  if (providerData !== undefined) call.providerData = providerData
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
