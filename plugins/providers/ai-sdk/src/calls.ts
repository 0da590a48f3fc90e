import type { Json, ToolCallPart } from '@svc/core/contracts'
import { plainMetadata } from './provider-data.ts'
import type { StreamPart } from './sdk.ts'

type Emit = (call: ToolCallPart) => void
type WholeCall = Extract<StreamPart, { type: 'tool-call' }>

interface Begun {
  readonly tool: string
  text: string
  whole?: ToolCallPart
}

/** The tool calls of an answer in the order in which they began, whichever is whole first. What a provider runs itself is none of ours. */
export class Calls {
  readonly #begun = new Map<string, Begun>()
  readonly #foreign = new Set<string>()
  #told = 0

  get any(): boolean {
    return this.#told > 0
  }

  begin(id: string, tool: string, isForeign: boolean): void {
    if (isForeign) this.#foreign.add(id)
    else this.#begun.set(id, { tool, text: '' })
  }

  add(id: string, delta: string): void {
    const call = this.#begun.get(id)
    if (call) call.text += delta
  }

  whole(part: WholeCall, emit: Emit): void {
    const id = part.toolCallId || `call_${this.#told + this.#begun.size + 1}`
    if (part.providerExecuted || this.#foreign.has(id)) return
    const call = this.#begun.get(id) ?? { tool: part.toolName, text: '' }
    const data = plainMetadata(part.providerMetadata)
    call.whole = { ...toCall(id, part.toolName, part.input), ...(data === undefined ? {} : { providerData: data }) }
    this.#begun.set(id, call)
    this.#tell(emit)
  }

  /** The answer has ended. Packages of version 2 drop a call whose arguments are not valid JSON: this method emits it with the text of the model. */
  end(emit: Emit, isCut: boolean): void {
    for (const [id, call] of this.#begun) if (!isCut) call.whole ??= toCall(id, call.tool, call.text)
    for (const [id, call] of this.#begun) if (!call.whole) this.#begun.delete(id)
    this.#tell(emit)
  }

  #tell(emit: Emit): void {
    for (const [id, { whole }] of this.#begun) {
      if (!whole) return
      this.#begun.delete(id)
      this.#told++
      emit(whole)
    }
  }
}

function toCall(id: string, tool: string, text: string): ToolCallPart {
  const args = readObject(text.trim() === '' ? '{}' : text)
  return { type: 'tool_call', id, tool, arguments: args ?? {}, ...(args === undefined ? { invalid: text } : {}) }
}

function readObject(text: string): ToolCallPart['arguments'] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as { [name: string]: Json }) : undefined
  } catch {
    return undefined
  }
}
