import type { Json, ModelCallEvent, ToolCallPart, Usage } from '@svc/core/contracts'
import { isObject, type Wire } from '../fields.ts'
import { OpaquePacker } from '../opaque.ts'
import { argumentsText, callDataWire, citationWire, detailsWire, logprobWire, newId, nowSeconds, usageWire } from './wire.ts'

type Part = Exclude<ModelCallEvent, { type: 'start' | 'native' | 'usage' | 'end' }>
type Of<T extends Part['type']> = Extract<Part, { type: T }>

/** What has been sent of one answer. */
class Choice {
  hasRole = false
  /** Indexes of the calls whose first piece was sent. */
  readonly begun = new Set<number>()
  /** Number of whole calls. */
  calls = 0
  readonly packer = new OpaquePacker()
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

const DONE = 'data: [DONE]\n\n'

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
  readonly #template = new TextTemplate()
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
    if (event.type === 'native') return isObject(event.data) ? this.#original(event.data) : ''
    if (event.type === 'start') this.#provider = event.provider
    else if (event.type === 'usage') this.#usage = event.usage
    else if (event.type === 'end') return this.#end(event.usage)
    else if (!this.#isNative) return this.#part(event)
    return ''
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

  #reasoning(event: Of<'reasoning'>, index: number, choice: Choice): string {
    choice.packer.reasoning(this.#provider, event)
    return event.text === '' ? '' : this.#delta(index, choice, { reasoning_content: event.text })
  }

  #callPiece({ index: at, id, tool, text }: Of<'tool_call_delta'>, index: number, choice: Choice): string {
    if (choice.begun.has(at)) return this.#delta(index, choice, { tool_calls: [{ index: at, function: { arguments: text } }] })
    choice.begun.add(at)
    const call = { index: at, id, type: 'function', function: { name: tool, arguments: text } }
    return this.#call(call, choice.packer.take(), index, choice)
  }

  /** A call whose pieces were sent has only its data left. */
  #wholeCall(event: ToolCallPart, index: number, choice: Choice): string {
    const at = choice.calls++
    const { id, tool: name, providerData: data } = event
    const packed = choice.packer.take({ provider: this.#provider, of: 'call', call: id, data })
    if (!choice.begun.has(at)) {
      const call = { index: at, id, type: 'function', function: { name, arguments: argumentsText(event) } }
      return this.#call(call, packed, index, choice)
    }
    return packed === undefined ? '' : this.#call({ index: at, id, function: { arguments: '' } }, packed, index, choice)
  }

  #call(call: Wire & { readonly id: string }, data: string | undefined, index: number, choice: Choice): string {
    return this.#delta(index, choice, { tool_calls: [{ ...call, ...callDataWire(data) }], ...detailsWire(data, call.id) })
  }

  #finish({ reason, providerData: data }: Of<'finish'>, index: number, choice: Choice): string {
    const details = detailsWire(choice.packer.take({ provider: this.#provider, of: 'message', data }))
    const first = choice.hasRole ? '' : this.#delta(index, choice, { content: '' })
    return first + this.#chunk({ index, delta: details, logprobs: null, finish_reason: reason })
  }

  /** A chunk of the server, with one id and the name of the request. Its usage is sent at the end. */
  #original(chunk: Wire): string {
    const known = this.#template.write(chunk)
    if (known !== undefined) return known
    this.#isNative = true
    this.#begin(chunk.id, chunk.created)
    const { usage, ...rest } = chunk
    if (isObject(usage)) this.#nativeUsage = usage
    const choices = Array.isArray(chunk.choices) ? chunk.choices : []
    if (choices.length === 0 && usage !== undefined && usage !== null) return ''
    const repaired = choices.map(choice => (isObject(choice) ? this.#repaired(choice) : choice))
    const own = { id: this.#id, object: 'chat.completion.chunk', created: this.#created, model: this.#model, choices: repaired }
    const sent = { ...rest, ...own }
    if (repaired[0] === choices[0]) this.#template.learn(chunk, sent)
    return `data: ${JSON.stringify(sent)}\n\n`
  }

  /** Adds what clients need and some servers leave out: the first role, the index of tool calls, and their finish reason. */
  #repaired(wire: Wire): Wire {
    const choice = this.#choice(indexOf(wire))
    const calls = callsIn(wire)
    const isMisnamed = wire.finish_reason === 'stop' && choice.calls + calls.length > 0
    if (choice.hasRole && calls.length === 0 && !isMisnamed) return wire
    const delta = isObject(wire.delta) ? { delta: repairedDelta(wire.delta, calls, choice) } : {}
    choice.hasRole = true
    return { ...wire, ...delta, ...(isMisnamed ? { finish_reason: 'tool_calls' } : {}) }
  }
}

/** Chunks whose template is made: some servers send another value in each chunk. */
const MAX_LEARNED = 3
const MARK = '\u0000svc text\u0000'

/** Most chunks of a server differ from the one before only in their text. Writes such a chunk without the rest of its JSON. */
class TextTemplate {
  #chunk: Fields | undefined
  #choice: Fields | undefined
  #before = ''
  #after = ''
  #learned = 0

  write(chunk: Wire): string | undefined {
    if (!this.#chunk || !isLike(chunk, this.#chunk)) return undefined
    const choice = onlyChoice(chunk)
    if (!choice || !isLike(choice, this.#choice!)) return undefined
    const text = onlyText(choice)
    return text === undefined ? undefined : this.#before + JSON.stringify(text) + this.#after
  }

  /** Makes a template of a chunk that has only text. `sent`: the chunk as it is sent. */
  learn(chunk: Wire, sent: Wire): void {
    const choice = onlyChoice(chunk)
    if (this.#learned === MAX_LEARNED || !choice || onlyText(choice) === undefined || isObject(chunk.usage)) return
    this.#learned++
    const marked = JSON.stringify({ ...sent, choices: [{ ...choice, delta: { content: MARK } }] })
    const [before, after, ...more] = marked.split(JSON.stringify(MARK))
    if (before === undefined || after === undefined || more.length > 0) return
    this.#before = `data: ${before}`
    this.#after = `${after}\n\n`
    this.#chunk = fieldsOf(chunk, CHUNK_KEYS)
    this.#choice = fieldsOf(choice, CHOICE_KEYS)
  }
}

/** Keys whose values are not compared: those that svc replaces, and that are compared apart. */
const CHUNK_KEYS: readonly string[] = ['id', 'created', 'model', 'object', 'choices']
const CHOICE_KEYS: readonly string[] = ['delta']

/** The keys of an object in order, with their values. */
interface Fields {
  readonly keys: readonly string[]
  readonly values: readonly unknown[]
}
/** In place of a value that can differ. */
const ANY = Symbol('any')

const fieldsOf = (object: Wire, varying: readonly string[]): Fields => ({
  keys: Object.keys(object),
  values: Object.entries(object).map(([key, value]) => (varying.includes(key) ? ANY : value)),
})

/** Whether an object has the same keys in the same order, and the same plain values. This is the hot path. */
function isLike(object: Wire, { keys, values }: Fields): boolean {
  const own = Object.keys(object)
  if (own.length !== keys.length) return false
  for (let at = 0; at < own.length; at++) {
    if (own[at] !== keys[at]) return false
    const value = values[at]
    // two objects are never the same
    if (value !== ANY && value !== object[own[at]!]) return false
  }
  return true
}

const onlyChoice = ({ choices }: Wire): Wire | undefined =>
  Array.isArray(choices) && choices.length === 1 && isObject(choices[0]) ? choices[0] : undefined

function onlyText({ delta, finish_reason }: Wire): string | undefined {
  if (finish_reason !== null && finish_reason !== undefined) return undefined
  if (!isObject(delta) || typeof delta.content !== 'string') return undefined
  return Object.keys(delta).length === 1 ? delta.content : undefined
}

/** More than any server gives. */
const MOST_CHOICES = 128

const indexOf = ({ index }: Wire) => (typeof index === 'number' && index > 0 && index < MOST_CHOICES ? Math.floor(index) : 0)

const NO_CALLS: readonly Json[] = []

function callsIn({ delta }: Wire): readonly Json[] {
  return isObject(delta) && Array.isArray(delta.tool_calls) ? delta.tool_calls : NO_CALLS
}

const repairedDelta = (delta: Wire, calls: readonly Json[], choice: Choice): Wire => ({
  ...(choice.hasRole || delta.role !== undefined ? {} : { role: 'assistant' }),
  ...delta,
  ...(calls.length === 0 ? {} : { tool_calls: calls.map(call => withIndex(call, choice)) }),
})

/** A piece of a call with its index: a new id begins a call, other pieces are of the last one. */
function withIndex(call: Json, choice: Choice): Json {
  if (!isObject(call)) return call
  if (typeof call.index === 'number') {
    choice.calls = Math.max(choice.calls, call.index + 1)
    return call
  }
  if (typeof call.id === 'string' && call.id !== '') choice.calls++
  return { index: Math.max(0, choice.calls - 1), ...call }
}

const TEXT_TAIL = '},"logprobs":null,"finish_reason":null}]}\n\n'
