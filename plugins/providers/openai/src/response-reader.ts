import type { FinishReason, Json, ModelEvent, ModelRequest, TokenLogprob, Usage } from '@svc/core/contracts'
import {
  countIn,
  cutShort,
  estimateTokens,
  type FrameReader,
  isTree,
  malformed,
  textIn,
  ToolCalls,
  type Tree,
  treeIn,
  type Upstream,
} from '@svc/provider-http'
import { cite, tokenOf } from './chunk.ts'
import { StopTexts } from './stop-texts.ts'

type Emit = (event: ModelEvent) => void

/** Events with the whole response at its end. */
const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

/** Reads the events of one streamed response of the Responses API, or one whole response. */
export class ResponseReader implements FrameReader {
  done = false
  readonly #provider: string
  readonly #failed: Upstream['failed']
  readonly #calls: ToolCalls
  /** Characters of the arguments of each call so far, by its place in the output. */
  readonly #argued = new Map<number, number>()
  /** Places in the output whose text or reasoning has come in pieces. */
  readonly #said = new Set<number>()
  readonly #request: ModelRequest
  readonly #stops: StopTexts | undefined
  /** The text so far, to estimate the usage of a stream that svc ends. */
  #text = ''
  #isRefused = false
  #hasItems = false
  #end: Tree | undefined

  constructor(provider: string, upstream: Pick<Upstream, 'failed'>, request: ModelRequest) {
    const { toolCallDeltas, stop = [] } = request
    this.#provider = provider
    this.#request = request
    this.#stops = stop.length > 0 ? new StopTexts(stop) : undefined
    this.#failed = (status, body) => upstream.failed(status, body)
    this.#calls = new ToolCalls(provider, { deltas: toolCallDeltas === true })
  }

  frame(data: string, event: string, emit: Emit): void {
    if (data === '[DONE]') return
    const frame: unknown = JSON.parse(data)
    const type = textIn(frame, 'type') ?? event
    if (!isTree(frame)) throw malformed(this.#provider)
    if (type === 'error') throw this.#failed(200, isTree(frame.error) ? frame : { error: frame })
    if (ENDS.has(type)) return this.#ended(treeIn(frame, 'response'), emit)
    this.#piece(type, frame, countIn(frame, 'output_index') ?? 0, emit)
  }

  whole(body: unknown, emit: Emit): void {
    if (!isTree(body) || !Array.isArray(body.output)) throw malformed(this.#provider)
    this.#ended(body, emit)
  }

  end(emit: Emit): void {
    const stopText = this.#stops?.found
    if (!this.#end && stopText === undefined) throw cutShort(this.#provider)
    this.#release(emit)
    const reason = stopText === undefined ? this.#reasonOf(this.#end ?? {}) : this.#endOfCalls()
    // an answer that was cut has incomplete calls
    if (reason === 'tool_calls') this.#calls.emit(emit)
    if (isTree(this.#end?.usage)) emit({ type: 'usage', usage: usageOf(this.#end.usage) })
    else if (!this.#end) emit({ type: 'usage', usage: this.#estimated() })
    emit({ type: 'finish', reason, ...(stopText === undefined ? {} : { stopText }) })
  }

  /** The usage of a stream that ended before the server reported it. */
  #estimated(): Usage {
    const said = { role: 'assistant', parts: [{ type: 'text', text: this.#text }] } as const
    return {
      input: estimateTokens(this.#request),
      output: estimateTokens({ model: this.#request.model, messages: [said] }),
    }
  }

  #reasonOf(response: Tree): FinishReason {
    if (this.#isRefused) return 'content_filter'
    if (response.status === 'incomplete')
      return textIn(treeIn(response, 'incomplete_details'), 'reason') === 'content_filter' ? 'content_filter' : 'length'
    return this.#endOfCalls()
  }

  #endOfCalls(): FinishReason {
    return this.#calls.count > 0 ? 'tool_calls' : 'stop'
  }

  #ended(response: Tree, emit: Emit): void {
    const { status = 'completed', error, output } = response
    if (status === 'failed' || isTree(error)) throw this.#failed(200, { error: isTree(error) ? error : { code: 'server_error' } })
    if (status !== 'completed' && status !== 'incomplete') throw cutShort(this.#provider)
    // the items of a stream came before
    if (!this.#hasItems && Array.isArray(output))
      for (const [index, item] of (output as unknown[]).entries()) this.#item(item, index, emit)
    this.#end = response
    this.done = true
  }

  #piece(type: string, frame: Tree, index: number, emit: Emit): void {
    const delta = textIn(frame, 'delta') ?? ''
    switch (type) {
      case 'response.output_text.delta':
        this.#say(delta, index, emit)
        return this.#logprobs(frame.logprobs, emit)
      case 'response.refusal.delta':
        return this.#refuse(delta, index, emit)
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#think(delta, index, emit)
      case 'response.reasoning_summary_part.added':
        return this.#think(this.#said.has(index) ? PARAGRAPH : '', index, emit)
      case 'response.function_call_arguments.delta':
        return this.#argue(delta, index, emit)
      case 'response.output_text.annotation.added':
        return cite(frame.annotation, emit)
      case 'response.output_item.added':
        return this.#began(treeIn(frame, 'item'), index, emit)
      case 'response.output_item.done':
        return this.#item(frame.item, index, emit)
      case 'response.in_progress':
        return alive(emit)
      default:
        return
    }
  }

  #began(item: Tree, index: number, emit: Emit): void {
    if (item.type === 'reasoning') return alive(emit)
    if (item.type !== 'function_call') return
    this.#hasItems = true
    this.#call(item, index, emit)
  }

  /** The name and the id of a call. */
  #call(item: Tree, index: number, emit: Emit): void {
    if (this.#argued.has(index)) return
    this.#argued.set(index, 0)
    const [id, tool] = [textIn(item, 'call_id'), textIn(item, 'name')]
    this.#calls.add(index, { ...(id === undefined ? {} : { id }), ...(tool === undefined ? {} : { tool }) }, emit)
  }

  #argue(text: string, index: number, emit: Emit): void {
    const before = this.#argued.get(index)
    // pieces before their call belong to a tool that svc does not have
    if (before === undefined || text === '') return
    this.#argued.set(index, before + text.length)
    this.#calls.add(index, { text }, emit)
  }

  #say(text: string, index: number, emit: Emit): void {
    if (text === '') return
    this.#said.add(index)
    const shown = this.#stops ? this.#stops.take(text) : text
    this.#show(shown, emit)
    if (this.#stops?.found !== undefined) this.done = true
  }

  #show(text: string, emit: Emit): void {
    if (text === '') return
    if (this.#stops) this.#text += text
    emit({ type: 'text', text })
  }

  /** Shows the text that was held back as the possible beginning of a stop text. */
  #release(emit: Emit): void {
    if (this.#stops?.found === undefined) this.#show(this.#stops?.rest() ?? '', emit)
  }

  #refuse(text: string, index: number, emit: Emit): void {
    this.#isRefused = true
    if (text === '') return
    this.#said.add(index)
    emit({ type: 'text', text, refusal: true })
  }

  #think(text: string, index: number, emit: Emit): void {
    if (text === '') return
    this.#said.add(index)
    emit({ type: 'reasoning', text })
  }

  #logprobs(list: unknown, emit: Emit): void {
    if (!Array.isArray(list) || list.length === 0 || this.#stops?.found !== undefined) return
    const tokens = (list as unknown[]).map(tokenOf)
    if (tokens.some(token => token === undefined)) throw malformed(this.#provider)
    emit({ type: 'logprobs', tokens: tokens as TokenLogprob[] })
  }

  /** A whole item. What has come in pieces is not repeated. */
  #item(item: unknown, index: number, emit: Emit): void {
    if (!isTree(item)) throw malformed(this.#provider)
    if (this.#stops?.found !== undefined) return
    this.#hasItems = true
    if (item.type !== 'message') this.#release(emit)
    if (item.type === 'message') return this.#message(item, index, emit)
    if (item.type === 'reasoning') return this.#reasoning(item, index, emit)
    if (item.type !== 'function_call') return
    this.#call(item, index, emit)
    this.#argue((textIn(item, 'arguments') ?? '').slice(this.#argued.get(index)), index, emit)
  }

  #message({ content }: Tree, index: number, emit: Emit): void {
    if (this.#said.has(index) || !Array.isArray(content)) return
    for (const part of content as unknown[]) {
      const [text, refusal] = [textIn(part, 'text'), textIn(part, 'refusal')]
      if (refusal !== undefined) this.#refuse(refusal, index, emit)
      if (text !== undefined) this.#say(text, index, emit)
      const { logprobs, annotations } = isTree(part) ? part : {}
      this.#logprobs(logprobs, emit)
      if (Array.isArray(annotations)) for (const one of annotations as unknown[]) cite(one, emit)
      if (this.#stops?.found !== undefined) return
    }
  }

  /** The item is the data of its reasoning: the next request returns it as it is. */
  #reasoning(item: Tree, index: number, emit: Emit): void {
    const text = this.#said.has(index) ? '' : (wordsIn(item.summary) ?? wordsIn(item.content) ?? '')
    const isOpaque = typeof item.encrypted_content === 'string' && item.encrypted_content !== ''
    if (isOpaque) emit({ type: 'reasoning', text, providerData: item as Json })
    else if (text !== '') emit({ type: 'reasoning', text })
  }
}

const PARAGRAPH = '\n\n'

function wordsIn(parts: unknown): string | undefined {
  if (!Array.isArray(parts)) return undefined
  const words = (parts as unknown[]).flatMap(part => textIn(part, 'text') ?? [])
  return words.length === 0 ? undefined : words.join(PARAGRAPH)
}

/** An empty piece shows that the model works. */
const alive = (emit: Emit): void => emit({ type: 'reasoning', text: '' })

function usageOf(usage: Tree): Usage {
  const [input, output] = [countIn(usage, 'input_tokens') ?? 0, countIn(usage, 'output_tokens') ?? 0]
  const cached = countIn(treeIn(usage, 'input_tokens_details'), 'cached_tokens')
  const reasoning = countIn(treeIn(usage, 'output_tokens_details'), 'reasoning_tokens')
  return {
    input,
    output,
    ...(cached === undefined ? {} : { cached: Math.min(cached, input) }),
    ...(reasoning === undefined ? {} : { reasoning: Math.min(reasoning, output) }),
  }
}
