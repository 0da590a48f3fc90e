import type { ModelCallEvent, ToolCallPart, Usage } from '@svc/core/contracts'
import { isObject, type Wire } from '../fields.ts'
import { argumentsText, callDataWire, citationWire, detailWire, logprobWire, newId, nowSeconds, usageWire } from './wire.ts'

type Part = Exclude<ModelCallEvent, { type: 'start' | 'native' | 'usage' | 'end' }>
type Of<T extends Part['type']> = Extract<Part, { type: T }>

/** What has been sent of one answer. */
class Choice {
  hasRole = false
  /** Indexes of the calls whose first piece was sent. */
  readonly begun = new Set<number>()
  /** Number of whole calls. */
  calls = 0
  details = 0
  thought = ''
  /** Text that waits for its log probabilities. */
  pending: Wire | undefined
}

/** How the chunks of a stream are written. */
export interface ChunkOptions {
  /** The name of the request. */
  readonly model: string
  readonly includeUsage: boolean
  readonly hasLogprobs: boolean
}

export const DONE = 'data: [DONE]\n\n'

/** Writes the events of a call as frames of a chat completion stream. */
export class ChunkWriter {
  readonly #model: string
  readonly #includeUsage: boolean
  readonly #hasLogprobs: boolean
  readonly #choices: Choice[] = []
  #provider = ''
  #usage: Usage | undefined
  /** The usage chunk of the server. */
  #nativeUsage: Wire | undefined
  #isNative = false
  #id = ''
  #created = 0
  #head = ''
  /** The frame around a piece of text, without the name of its role. */
  #textHead = ''

  constructor({ model, includeUsage, hasLogprobs }: ChunkOptions) {
    this.#model = model
    this.#includeUsage = includeUsage
    this.#hasLogprobs = hasLogprobs
  }

  /** The frames of an event; an empty text for none. The first event is `start`. */
  take(event: ModelCallEvent): string {
    // the hot path: a piece of text of the only answer
    if (event.type === 'text' && this.#isPlain && !event.choice && !event.refusal)
      return `${this.#textHead}${JSON.stringify(event.text)}${TEXT_TAIL}`
    switch (event.type) {
      case 'start':
        this.#provider = event.provider
        return ''
      case 'native':
        return isObject(event.data) ? this.#original(event.data) : ''
      case 'usage':
        this.#usage = event.usage
        return ''
      case 'end':
        return this.#end(event.usage)
      default:
        return this.#isNative ? '' : this.#part(event)
    }
  }

  get #isPlain(): boolean {
    return !this.#isNative && !this.#hasLogprobs && this.#choices.length === 1 && this.#choices[0]!.hasRole
  }

  #begin(id: unknown, created: unknown): void {
    if (this.#id !== '') return
    this.#id = typeof id === 'string' && id !== '' ? id : newId()
    this.#created = typeof created === 'number' ? created : nowSeconds()
    const head = JSON.stringify({ id: this.#id, object: 'chat.completion.chunk', created: this.#created, model: this.#model })
    this.#head = `data: ${head.slice(0, -1)},"choices":`
    this.#textHead = `${this.#head}[{"index":0,"delta":{"content":`
  }

  #choice(index: number): Choice {
    return (this.#choices[index] ??= new Choice())
  }

  #end(usage: Usage): string {
    if (!this.#includeUsage) return DONE
    this.#begin(undefined, undefined)
    const own = `${this.#head}[],"usage":${JSON.stringify(this.#nativeUsage ?? usageWire(this.#usage ?? usage))}}\n\n`
    return own + DONE
  }

  #part(event: Part): string {
    this.#begin(undefined, undefined)
    const index = event.choice ?? 0
    const choice = this.#choice(index)
    if (event.type === 'logprobs') return this.#logprobs(event, index, choice)
    const before = this.#flush(index, choice)
    switch (event.type) {
      case 'text':
        return before + this.#text(event, index, choice)
      case 'reasoning':
        return before + this.#reasoning(event, index, choice)
      case 'tool_call_delta':
        return before + this.#callPiece(event, index, choice)
      case 'tool_call':
        return before + this.#wholeCall(event, index, choice)
      case 'citation':
        return before + this.#delta(index, choice, { annotations: [citationWire(event.citation)] })
      case 'finish':
        return before + this.#finish(event, index, choice)
    }
  }

  #delta(index: number, choice: Choice, delta: object, logprobs: object | null = null): string {
    const role = choice.hasRole ? {} : { role: 'assistant', ...('content' in delta ? {} : { content: null }) }
    choice.hasRole = true
    return this.#chunk({ index, delta: { ...role, ...delta }, logprobs, finish_reason: null })
  }

  #chunk(choice: object): string {
    return `${this.#head}[${JSON.stringify(choice)}]}\n\n`
  }

  #text({ text, refusal }: Of<'text'>, index: number, choice: Choice): string {
    const delta = refusal ? { refusal: text } : { content: text }
    if (!this.#hasLogprobs) return this.#delta(index, choice, delta)
    choice.pending = delta
    return ''
  }

  /** Log probabilities follow the text that they are of, and are sent with it. */
  #logprobs({ tokens }: Of<'logprobs'>, index: number, choice: Choice): string {
    const { pending = {} } = choice
    choice.pending = undefined
    return this.#delta(index, choice, pending, { content: tokens.map(logprobWire), refusal: null })
  }

  #flush(index: number, choice: Choice): string {
    const { pending } = choice
    choice.pending = undefined
    return pending ? this.#delta(index, choice, pending) : ''
  }

  #reasoning({ text, providerData: data }: Of<'reasoning'>, index: number, choice: Choice): string {
    choice.thought += text
    const said = text === '' ? '' : this.#delta(index, choice, { reasoning_content: text })
    if (data === undefined) return said
    const detail = detailWire({ provider: this.#provider, of: 'reasoning', text: choice.thought, data }, choice.details++)
    choice.thought = ''
    return said + this.#delta(index, choice, { reasoning_details: [detail] })
  }

  #callPiece({ index: at, id, tool, text }: Of<'tool_call_delta'>, index: number, choice: Choice): string {
    if (choice.begun.has(at)) return this.#delta(index, choice, { tool_calls: [{ index: at, function: { arguments: text } }] })
    choice.begun.add(at)
    const call = { index: at, id, type: 'function', function: { name: tool, arguments: text } }
    return this.#delta(index, choice, { tool_calls: [call] })
  }

  /** A call whose pieces were sent has only its data left. */
  #wholeCall(call: ToolCallPart, index: number, choice: Choice): string {
    const at = choice.calls++
    const data = callDataWire(call, this.#provider)
    if (choice.begun.has(at)) {
      if (call.providerData === undefined) return ''
      return this.#delta(index, choice, { tool_calls: [{ index: at, ...data }] })
    }
    const whole = {
      index: at,
      id: call.id,
      type: 'function',
      function: { name: call.tool, arguments: argumentsText(call) },
      ...data,
    }
    return this.#delta(index, choice, { tool_calls: [whole] })
  }

  #finish({ reason, providerData: data }: Of<'finish'>, index: number, choice: Choice): string {
    const details =
      data === undefined
        ? {}
        : { reasoning_details: [detailWire({ provider: this.#provider, of: 'message', data }, choice.details++)] }
    const first = choice.hasRole ? '' : this.#delta(index, choice, { content: '' })
    return first + this.#chunk({ index, delta: details, logprobs: null, finish_reason: reason })
  }

  /** A chunk of the server, with one id and the name of the request. Its usage is sent at the end. */
  #original(chunk: Wire): string {
    this.#isNative = true
    this.#begin(chunk.id, chunk.created)
    const { usage, ...rest } = chunk
    if (isObject(usage)) this.#nativeUsage = usage
    const choices = Array.isArray(chunk.choices) ? chunk.choices : []
    if (choices.length === 0 && usage !== undefined && usage !== null) return ''
    const mended = choices.map(choice => (isObject(choice) ? this.#mended(choice) : choice))
    const own = { id: this.#id, object: 'chat.completion.chunk', created: this.#created, model: this.#model, choices: mended }
    return `data: ${JSON.stringify({ ...rest, ...own })}\n\n`
  }

  /** Adds what clients need and some servers leave out: the first role, the index of tool calls, and their finish reason. */
  #mended(wire: Wire): Wire {
    const choice = this.#choice(typeof wire.index === 'number' && wire.index >= 0 && wire.index < 128 ? wire.index : 0)
    const delta = isObject(wire.delta) ? wire.delta : undefined
    const calls = Array.isArray(delta?.tool_calls) && delta.tool_calls.length > 0 ? delta.tool_calls : undefined
    const isMisnamed = wire.finish_reason === 'stop' && choice.calls > 0
    if (choice.hasRole && !calls && !isMisnamed) return wire
    const role = choice.hasRole || !delta || delta.role !== undefined ? {} : { role: 'assistant' }
    choice.hasRole = true
    const indexed = calls?.map(call => {
      if (!isObject(call)) return call
      if (typeof call.index === 'number') {
        choice.calls = Math.max(choice.calls, call.index + 1)
        return call
      }
      if (typeof call.id === 'string' && call.id !== '') choice.calls++
      return { index: Math.max(0, choice.calls - 1), ...call }
    })
    return {
      ...wire,
      ...(delta ? { delta: { ...role, ...delta, ...(indexed ? { tool_calls: indexed } : {}) } } : {}),
      ...(wire.finish_reason === 'stop' && choice.calls > 0 ? { finish_reason: 'tool_calls' } : {}),
    }
  }
}

const TEXT_TAIL = '},"logprobs":null,"finish_reason":null}]}\n\n'
