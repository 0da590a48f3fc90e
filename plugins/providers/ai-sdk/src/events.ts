import type { FinishReason, Json, ModelEvent, ReasoningPart, ToolCallPart, Usage } from '@svc/core/contracts'
import {
  mergeMetadata,
  type Metadata,
  plainMetadata,
  type SdkFinish,
  type SdkUsage,
  type StreamPart,
  type Warning,
  writeTextData,
} from './sdk.ts'

/** What the events of one answer need around them. */
export interface EventsParts {
  readonly emit: (event: ModelEvent) => void
  readonly warn: (warnings: readonly Warning[]) => void
  /** The failure that an error inside the stream stands for. */
  readonly failureOf: (error: unknown) => Error
  /** The failure of an answer that ends early. */
  readonly cut: () => Error
}

/** Turns the stream parts of one answer into events. */
export interface Events {
  /** Throws the failure that a part tells. */
  take(part: StreamPart): void
  /** The stream has ended. Throws when the answer had not. */
  end(): void
}

type Takers = { readonly [T in StreamPart['type']]: (part: Extract<StreamPart, { type: T }>) => void }

/** Makes the events of one answer. Parts of unknown types (sources, files, raw chunks) are passed over. */
export function createEvents({ emit, warn, failureOf, cut }: EventsParts): Events {
  const [calls, reasoning, texts] = [new Calls(), new Reasoning(), new Texts()]
  let finished = false
  const other = (event: ModelEvent) => {
    texts.close()
    emit(event)
  }
  const takers: Takers = {
    'stream-start': part => warn(part.warnings),
    'text-start': part => texts.about(part.providerMetadata),
    'text-delta': part => {
      if (part.delta === '') return
      texts.open()
      emit({ type: 'text', text: part.delta })
    },
    'text-end': part => texts.about(part.providerMetadata),
    'reasoning-start': part => reasoning.take(part.id, part, false, other),
    'reasoning-delta': part => reasoning.take(part.id, part, false, other),
    'reasoning-end': part => reasoning.take(part.id, part, true, other),
    'tool-input-start': part => calls.begin(part.id, part.toolName, part.providerExecuted ?? false),
    'tool-input-delta': part => {
      calls.add(part.id, part.delta)
      emit(ALIVE)
    },
    'tool-input-end': () => {},
    'tool-call': part => calls.whole(part, other),
    finish({ finishReason, usage }) {
      const word = wordOf(finishReason)
      if (CUT.has(word)) throw cut()
      reasoning.end(other)
      calls.end(other, word === 'length')
      const tokens = toUsage(usage)
      if (tokens) emit({ type: 'usage', usage: tokens })
      const data = texts.data()
      const reason = calls.any ? 'tool_calls' : (REASONS[word] ?? 'stop')
      emit({ type: 'finish', reason, ...(data === undefined ? {} : { providerData: data }) })
      finished = true
    },
    error: part => {
      throw failureOf(part.error)
    },
  }
  return {
    take(part) {
      if (!finished && Object.hasOwn(takers, part.type)) takers[part.type](part as never)
    },
    end() {
      if (!finished) throw cut()
    },
  }
}

/** Long arguments are no silence. */
const ALIVE: ModelEvent = { type: 'reasoning', text: '' }

/** What packages say of an end whose reason never came: the body just stopped. */
const CUT: ReadonlySet<string> = new Set(['interrupted', 'error', 'unknown', ''])
const REASONS: Readonly<Record<string, FinishReason>> = { stop: 'stop', length: 'length', 'content-filter': 'content_filter' }

/** The reason as one word; empty where the upstream gave none. */
function wordOf(finish: SdkFinish | undefined): string {
  if (typeof finish === 'string') return finish
  return finish?.unified === 'other' && finish.raw === undefined ? '' : (finish?.unified ?? '')
}

/** The metadata of each run of text, in order, because text parts cannot carry it. */
class Texts {
  readonly #metadata: (Metadata | undefined)[] = []
  #ahead: Metadata | undefined
  #open = false

  open(): void {
    if (!this.#open) this.#metadata.push(this.#ahead)
    this.#open = true
    this.#ahead = undefined
  }

  close(): void {
    this.#open = false
  }

  about(metadata: Metadata | undefined): void {
    const data = plainMetadata(metadata)
    if (!this.#open) this.#ahead = data
    else this.#metadata.push(mergeMetadata(this.#metadata.pop(), data))
  }

  data() {
    return writeTextData(this.#metadata)
  }
}

type Emit = (piece: ReasoningPart) => void

interface Block {
  text: string
  data: Metadata | undefined
  ended: boolean
}

/**
 * The reasoning of an answer, block after block: the text of a block as it comes, then a piece without text that has the data, if there is any. Blocks may
 * lie in each other; a later one waits until the one before it has ended.
 */
class Reasoning {
  readonly #blocks = new Map<string, Block>()

  /** Something about a block: that it begins, more of its text, that it ends; each may bring data. */
  take(
    id: string,
    part: { readonly delta?: string; readonly providerMetadata?: Metadata | undefined },
    ended: boolean,
    emit: Emit
  ): void {
    const block = this.#blocks.get(id) ?? { text: '', data: undefined, ended: false }
    this.#blocks.set(id, block)
    block.text += part.delta ?? ''
    block.data = mergeMetadata(block.data, plainMetadata(part.providerMetadata))
    block.ended = ended
    this.#flush(emit)
  }

  end(emit: Emit): void {
    for (const block of this.#blocks.values()) block.ended = true
    this.#flush(emit)
  }

  #flush(emit: Emit): void {
    for (const [id, block] of this.#blocks) {
      if (block.text !== '') emit({ type: 'reasoning', text: block.text })
      block.text = ''
      if (!block.ended) return
      if (block.data !== undefined) emit({ type: 'reasoning', text: '', providerData: block.data })
      this.#blocks.delete(id)
    }
  }
}

type EmitCall = (call: ToolCallPart) => void
type WholeCall = Extract<StreamPart, { type: 'tool-call' }>

interface Begun {
  readonly tool: string
  text: string
  whole?: ToolCallPart
}

/** The tool calls of an answer in the order in which they began, whichever is whole first. What a provider runs itself is none of ours. */
class Calls {
  readonly #begun = new Map<string, Begun>()
  readonly #foreign = new Set<string>()
  #emitted = 0

  get any(): boolean {
    return this.#emitted > 0
  }

  begin(id: string, tool: string, isForeign: boolean): void {
    if (isForeign) this.#foreign.add(id)
    else this.#begun.set(id, { tool, text: '' })
  }

  add(id: string, delta: string): void {
    const call = this.#begun.get(id)
    if (call) call.text += delta
  }

  whole(part: WholeCall, emit: EmitCall): void {
    const id = part.toolCallId || `call_${this.#emitted + this.#begun.size + 1}`
    if (part.providerExecuted || this.#foreign.has(id)) return
    const call = this.#begun.get(id) ?? { tool: part.toolName, text: '' }
    const data = plainMetadata(part.providerMetadata)
    call.whole = { ...toCall(id, part.toolName, part.input), ...(data === undefined ? {} : { providerData: data }) }
    this.#begun.set(id, call)
    this.#flush(emit)
  }

  /** The answer has ended. Packages of version 2 drop a call whose arguments are not valid JSON: this method emits it with the text of the model. */
  end(emit: EmitCall, isCut: boolean): void {
    for (const [id, call] of this.#begun) if (!isCut) call.whole ??= toCall(id, call.tool, call.text)
    for (const [id, call] of this.#begun) if (!call.whole) this.#begun.delete(id)
    this.#flush(emit)
  }

  #flush(emit: EmitCall): void {
    for (const [id, { whole }] of this.#begun) {
      if (!whole) return
      this.#begun.delete(id)
      this.#emitted++
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

/** The tokens of a call, from the form of any version; `undefined` where the upstream counted none. */
function toUsage(usage: SdkUsage | undefined): Usage | undefined {
  const { input, output, cached, reasoning } = flat(usage ?? { inputTokens: undefined, outputTokens: undefined })
  if (count(input) === undefined && count(output) === undefined) return undefined
  const [whole, said] = [count(input) ?? 0, count(output) ?? 0]
  return { input: whole, output: said, ...part('cached', cached, whole), ...part('reasoning', reasoning, said) }
}

function flat(usage: SdkUsage) {
  const { inputTokens, outputTokens } = usage
  const input = typeof inputTokens === 'object' ? inputTokens : undefined
  const output = typeof outputTokens === 'object' ? outputTokens : undefined
  const old = 'cachedInputTokens' in usage || 'reasoningTokens' in usage ? usage : undefined
  return {
    input: input ? input.total : inputTokens,
    output: output ? output.total : outputTokens,
    cached: input ? input.cacheRead : old?.cachedInputTokens,
    reasoning: output ? output.reasoning : old?.reasoningTokens,
  }
}

const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : undefined

/** A part is never more than the whole, whatever an upstream counts. */
function part<N extends 'cached' | 'reasoning'>(name: N, value: unknown, whole: number): { readonly [K in N]?: number } {
  const tokens = count(value)
  return tokens === undefined ? {} : ({ [name]: Math.min(tokens, whole) } as { readonly [K in N]?: number })
}
