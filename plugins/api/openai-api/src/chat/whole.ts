import type { ModelCallEvent, TokenLogprob, Usage } from '@svc/core/contracts'
import { isObject, type Wire } from '../fields.ts'
import { OpaquePacker } from '../opaque.ts'
import { argumentsText, callDataWire, citationWire, detailsWire, logprobWire, newId, nowSeconds, usageWire } from './wire.ts'

/** One answer while it is gathered. */
class Choice {
  text = ''
  refusal = ''
  reasoning = ''
  finish = 'stop'
  readonly packer = new OpaquePacker()
  readonly details: object[] = []
  readonly calls: object[] = []
  readonly citations: object[] = []
  readonly logprobs: TokenLogprob[] = []

  keep(data: string | undefined, call?: string): void {
    this.details.push(...(detailsWire(data, call).reasoning_details ?? []))
  }

  wire(index: number, hasLogprobs: boolean) {
    const { text, refusal, reasoning, details, calls, citations, logprobs } = this
    return {
      index,
      message: {
        role: 'assistant',
        content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
        refusal: refusal === '' ? null : refusal,
        ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
        ...(details.length === 0 ? {} : { reasoning_details: details }),
        ...(citations.length === 0 ? {} : { annotations: citations }),
        ...(calls.length === 0 ? {} : { tool_calls: calls }),
      },
      logprobs: hasLogprobs ? { content: logprobs.map(logprobWire), refusal: null } : null,
      finish_reason: this.finish,
    }
  }
}

/** Gathers the events of a call into a chat completion. */
export class WholeAnswer {
  readonly #model: string
  readonly #hasLogprobs: boolean
  #choices: Choice[] = []
  #provider = ''
  #usage: Usage | undefined
  #native: Wire | undefined

  constructor(model: string, hasLogprobs: boolean) {
    this.#model = model
    this.#hasLogprobs = hasLogprobs
  }

  take(event: ModelCallEvent): void {
    if (event.type === 'start') this.#begin(event.provider)
    else if (event.type === 'native') this.#native = isObject(event.data) ? event.data : undefined
    else if (event.type === 'usage') this.#usage = event.usage
    else if (event.type === 'end') this.#usage ??= event.usage
    else this.#part(event, this.#choice(event.choice ?? 0))
  }

  /** Begins another attempt. */
  #begin(provider: string): void {
    this.#choices = []
    this.#native = this.#usage = undefined
    this.#provider = provider
  }

  /** The completion: that of the server with the name of the request, or one made of the events. */
  wire(): object {
    if (this.#native) return { ...this.#native, model: this.#model }
    return {
      id: newId(),
      object: 'chat.completion',
      created: nowSeconds(),
      model: this.#model,
      choices: Array.from({ length: Math.max(1, this.#choices.length) }, (_, at) => this.#choice(at).wire(at, this.#hasLogprobs)),
      usage: usageWire(this.#usage ?? { input: 0, output: 0 }),
    }
  }

  #choice(index: number): Choice {
    return (this.#choices[index] ??= new Choice())
  }

  #part(event: Exclude<ModelCallEvent, { type: 'start' | 'native' | 'usage' | 'end' }>, choice: Choice): void {
    const provider = this.#provider
    switch (event.type) {
      case 'text':
        if (event.refusal) choice.refusal += event.text
        else choice.text += event.text
        break
      case 'reasoning':
        choice.reasoning += event.text
        choice.packer.reasoning(provider, event)
        break
      case 'tool_call': {
        const data = choice.packer.take({ provider, of: 'call', call: event.id, data: event.providerData })
        const called = { name: event.tool, arguments: argumentsText(event) }
        choice.calls.push({ id: event.id, type: 'function', function: called, ...callDataWire(data) })
        choice.keep(data, event.id)
        break
      }
      case 'logprobs':
        choice.logprobs.push(...event.tokens)
        break
      case 'citation':
        choice.citations.push(citationWire(event.citation))
        break
      case 'finish':
        choice.finish = event.reason
        choice.keep(choice.packer.take({ provider, of: 'message', data: event.providerData }))
        break
      case 'tool_call_delta':
        // the whole call follows
        break
    }
  }
}
