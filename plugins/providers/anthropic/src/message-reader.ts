import type { FinishReason, Json, ModelEvent, Usage } from '@svc/core/contracts'
import {
  countIn,
  cutShort,
  type FrameReader,
  isTree,
  malformed,
  modelFailure,
  textIn,
  ToolCalls,
  type Tree,
  treeIn,
  type Upstream,
} from '@svc/provider-http'

type Emit = (event: ModelEvent) => void

/** Finish reasons of messages without tool calls. Any other reason, also a future one, is `stop`. */
const FINISHES = new Map<string, FinishReason>([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['pause_turn', 'length'],
  ['refusal', 'content_filter'],
])

/** Options of a reader. */
export interface ReaderOptions {
  readonly deltas?: boolean
  readonly isNative?: boolean
}

/** Reads the events of one streamed message, or one whole message. */
export class MessageReader implements FrameReader {
  done = false
  readonly #provider: string
  readonly #upstream: Pick<Upstream, 'failed'>
  readonly #calls: ToolCalls
  /** Open calls by index, with their initial arguments. Some servers send all arguments at once. */
  readonly #begun = new Map<number, string>()
  readonly #isNative: boolean
  #usage: Tree = {}
  #stop: string | undefined
  #stopText: string | undefined
  #refusal: string | undefined
  #thinks = false
  #hasText = false

  /** `isNative`: also returns the original events. */
  constructor(provider: string, upstream: Pick<Upstream, 'failed'>, { deltas = false, isNative = false }: ReaderOptions = {}) {
    this.#provider = provider
    this.#upstream = upstream
    this.#calls = new ToolCalls(provider, { deltas })
    this.#isNative = isNative
  }

  frame(data: string, event: string, emit: Emit): void {
    const frame = JSON.parse(data) as unknown
    // An error fails the call, so it is not an event of the answer.
    if (this.#isNative && isTree(frame) && frame.type !== 'error') emit({ type: 'native', event, data: frame as Json })
    switch (textIn(frame, 'type') ?? '') {
      case 'content_block_delta':
        return this.#delta(frame, treeIn(frame, 'delta'), emit)
      case 'content_block_start':
        return this.#start(countIn(frame, 'index') ?? 0, treeIn(frame, 'content_block'), emit)
      case 'content_block_stop':
        return this.#stopBlock(countIn(frame, 'index') ?? 0, emit)
      case 'message_start':
        return this.#count(treeIn(treeIn(frame, 'message'), 'usage'))
      case 'message_delta':
        return this.#ending(frame, treeIn(frame, 'delta'))
      case 'message_stop':
        this.done = true
        return
      case 'ping':
        return this.#alive(emit)
      case 'error':
        throw this.#upstream.failed(200, frame)
      default:
        return
    }
  }

  whole(body: unknown, emit: Emit): void {
    const { type, content } = isTree(body) ? body : {}
    if (type !== 'message' || !Array.isArray(content)) throw malformed(this.#provider)
    if (this.#isNative) emit({ type: 'native', data: body as Json })
    for (const [index, block] of (content as unknown[]).entries()) {
      if (!isTree(block)) throw malformed(this.#provider)
      this.#start(index, block, emit)
      this.#stopBlock(index, emit)
    }
    this.#ending(body, body)
  }

  end(emit: Emit): void {
    if (!this.done && this.#stop === undefined) throw cutShort(this.#provider)
    const reason = FINISHES.get(this.#stop ?? '') ?? 'stop'
    if (reason === 'content_filter' && !this.#hasText) throw refused(this.#provider, this.#refusal)
    // An answer that was cut has incomplete calls.
    const called = reason === 'stop' && this.#calls.count > 0
    if (called) this.#calls.emit(emit)
    const usage = usageOf(this.#usage)
    if (usage) emit({ type: 'usage', usage })
    const stopped = reason === 'stop' && !called && this.#stopText !== undefined ? { stopText: this.#stopText } : {}
    emit({ type: 'finish', reason: called ? 'tool_calls' : reason, ...stopped })
  }

  #delta(frame: unknown, delta: Tree, emit: Emit): void {
    switch (delta.type) {
      case 'text_delta':
        return this.#say(delta.text, emit)
      case 'thinking_delta':
        if (typeof delta.thinking === 'string' && delta.thinking !== '') emit({ type: 'reasoning', text: delta.thinking })
        return
      case 'signature_delta':
        return this.#sign(textIn(delta, 'signature'), emit)
      case 'input_json_delta':
        return this.#argue(countIn(frame, 'index') ?? 0, textIn(delta, 'partial_json') ?? '', emit)
      case 'citations_delta':
        return cite(delta.citation, emit)
    }
  }

  #start(index: number, block: Tree, emit: Emit): void {
    this.#thinks = block.type === 'thinking'
    if (block.type === 'text') {
      this.#say(block.text, emit)
      if (Array.isArray(block.citations)) for (const citation of block.citations as unknown[]) cite(citation, emit)
    } else if (block.type === 'tool_use') this.#begin(index, block, emit)
    else if (block.type === 'redacted_thinking')
      emit({ type: 'reasoning', text: '', providerData: { redacted: textIn(block, 'data') ?? '' } })
    else if (this.#thinks) {
      emit({ type: 'reasoning', text: textIn(block, 'thinking') ?? '' })
      this.#sign(textIn(block, 'signature'), emit)
    }
  }

  #say(text: unknown, emit: Emit): void {
    if (typeof text !== 'string' || text === '') return
    this.#hasText = true
    emit({ type: 'text', text })
  }

  /** The signature ends a block of reasoning. The next request returns the pieces before it as one block. */
  #sign(signature: string | undefined, emit: Emit): void {
    if (signature) emit({ type: 'reasoning', text: '', providerData: { signature } })
  }

  /** A model can think for long without output. An empty piece of reasoning shows that it still works. */
  #alive(emit: Emit): void {
    if (this.#thinks) emit({ type: 'reasoning', text: '' })
  }

  #begin(index: number, block: Tree, emit: Emit): void {
    this.#begun.set(index, argumentsOf(block.input))
    this.#calls.add(index, { id: textIn(block, 'id') ?? '', tool: textIn(block, 'name') ?? '' }, emit)
  }

  #argue(index: number, text: string, emit: Emit): void {
    if (text === '' || !this.#begun.has(index)) return
    this.#begun.set(index, '')
    this.#calls.add(index, { text }, emit)
  }

  #stopBlock(index: number, emit: Emit): void {
    this.#thinks = false
    const text = this.#begun.get(index)
    if (text) this.#calls.add(index, { text }, emit)
    this.#begun.delete(index)
  }

  #ending(frame: unknown, delta: unknown): void {
    this.#stop = textIn(delta, 'stop_reason') ?? this.#stop
    if (this.#stop === 'stop_sequence') this.#stopText = textIn(delta, 'stop_sequence')
    this.#refusal = textIn(treeIn(delta, 'stop_details'), 'explanation')
    this.#count(treeIn(frame, 'usage'))
  }

  /** Merges the usage counts. The last counts cover the whole message, but some fields can be absent. */
  #count(usage: Tree): void {
    const counts = Object.entries(usage).filter(([, value]) => value !== null)
    this.#usage = { ...this.#usage, ...Object.fromEntries(counts) }
  }
}

/** A source of the text: a web page, a search result or a document. Its positions are those in the source, so they are left out. */
function cite(citation: unknown, emit: Emit): void {
  const url = textIn(citation, 'url') ?? textIn(citation, 'source')
  const title = textIn(citation, 'title') ?? textIn(citation, 'document_title')
  const quote = textIn(citation, 'cited_text')
  if (url === undefined && title === undefined && quote === undefined) return
  emit({
    type: 'citation',
    citation: {
      ...(url === undefined ? {} : { url }),
      ...(title === undefined ? {} : { title }),
      ...(quote === undefined ? {} : { quote }),
    },
  })
}

/** The text of arguments that came at once. A string stays unchanged. */
function argumentsOf(input: unknown): string {
  if (typeof input === 'string') return input
  if (isTree(input) && Object.keys(input).length === 0) return ''
  return input === undefined || input === null ? '' : JSON.stringify(input)
}

function usageOf(usage: Tree): Usage | undefined {
  const [fresh, output] = [countIn(usage, 'input_tokens'), countIn(usage, 'output_tokens')]
  if (fresh === undefined && output === undefined) return undefined
  const cached = countIn(usage, 'cache_read_input_tokens') ?? 0
  const written = countIn(usage, 'cache_creation_input_tokens') ?? 0
  const input = (fresh ?? 0) + cached + written
  const thought = Math.min(countIn(treeIn(usage, 'output_tokens_details'), 'thinking_tokens') ?? 0, output ?? 0)
  return {
    input,
    output: output ?? 0,
    ...(cached > 0 ? { cached } : {}),
    ...(written > 0 ? { cacheWrite: written } : {}),
    ...(thought > 0 ? { reasoning: thought } : {}),
  }
}

const refused = (provider: string, explanation: string | undefined) =>
  modelFailure(
    provider,
    { kind: 'content_refused' },
    explanation ? `the model refused to answer: ${explanation}` : 'the model refused to answer'
  )
