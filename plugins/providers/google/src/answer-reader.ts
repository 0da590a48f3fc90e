import type { FinishReason, ModelEvent, Usage } from '@svc/core/contracts'
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

/** Finish reasons that are not a failure. A reason in neither table counts as `content_filter`. */
const FINISHES = new Map<string, FinishReason>([
  ['STOP', 'stop'],
  ['FINISH_REASON_UNSPECIFIED', 'stop'],
  ['MAX_TOKENS', 'length'],
])
/** The model wrote an unreadable answer; a retry can succeed. */
const BROKEN = new Set(['UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS', 'MALFORMED_RESPONSE', 'MALFORMED_FUNCTION_CALL'])

/** Patterns for the tool name in a message about a malformed call. */
const WRITTEN = [/default_api\.([\w-]+)/, /call:\s*(?!print\()([\w-]+)/]

/** Reads the frames of one streamed answer, or one whole response. Each frame is a response with the new parts. */
export class AnswerReader implements FrameReader {
  readonly #provider: string
  readonly #upstream: Pick<Upstream, 'failed'>
  readonly #calls: ToolCalls
  #usage: Tree = {}
  #finish: string | undefined
  #words = ''

  constructor(provider: string, upstream: Pick<Upstream, 'failed'>) {
    this.#provider = provider
    this.#upstream = upstream
    this.#calls = new ToolCalls(provider)
  }

  frame(data: string, _event: string, emit: Emit): void {
    const frame = JSON.parse(data) as unknown
    if (!isTree(frame)) return
    if (frame.error !== undefined) throw this.#upstream.failed(200, frame)
    this.#take(frame, emit)
  }

  whole(body: unknown, emit: Emit): void {
    if (!isTree(body) || !(Array.isArray(body.candidates) || isTree(body.promptFeedback))) throw malformed(this.#provider)
    this.#take(body, emit)
  }

  end(emit: Emit): void {
    if (this.#finish === undefined) throw cutShort(this.#provider)
    if (this.#finish === 'MISSING_THOUGHT_SIGNATURE') throw unsigned(this.#provider)
    if (BROKEN.has(this.#finish) && !this.#rescue()) throw broken(this.#provider, this.#finish, this.#words)
    const reason = BROKEN.has(this.#finish) ? 'stop' : (FINISHES.get(this.#finish) ?? 'content_filter')
    // Each call comes whole, so the calls of a cut answer are valid. The calls of a filtered answer are dropped.
    const called = reason !== 'content_filter' && this.#calls.count > 0
    if (called) this.#calls.emit(emit)
    const usage = usageOf(this.#usage)
    if (usage) emit({ type: 'usage', usage })
    emit({ type: 'finish', reason: called ? 'tool_calls' : reason })
  }

  #take(frame: Tree, emit: Emit): void {
    const candidate: unknown = Array.isArray(frame.candidates) ? frame.candidates[0] : undefined
    if (candidate === undefined) this.#checkBlocked(treeIn(frame, 'promptFeedback'))
    else this.#read(candidate, emit)
    if (isTree(frame.usageMetadata)) this.#usage = frame.usageMetadata
  }

  #read(candidate: unknown, emit: Emit): void {
    const { parts } = treeIn(candidate, 'content')
    if (Array.isArray(parts)) for (const part of parts) this.#part(part, emit)
    this.#finish = textIn(candidate, 'finishReason') ?? this.#finish
    this.#words = textIn(candidate, 'finishMessage') ?? this.#words
  }

  #part(part: unknown, emit: Emit): void {
    const [text, thoughtSignature] = [textIn(part, 'text'), textIn(part, 'thoughtSignature')]
    const call = isTree(part) && isTree(part.functionCall) ? part.functionCall : undefined
    if (call) return this.#call(call, thoughtSignature)
    if (text === undefined) return
    if (isTree(part) && part.thought === true) return emit(thoughtOf(text, thoughtSignature))
    if (text !== '') emit({ type: 'text', text })
    // A text cannot carry its signature, so an empty thought after it does.
    if (thoughtSignature) emit({ type: 'reasoning', text: '', providerData: { thoughtSignature } })
  }

  #call(call: Tree, thoughtSignature: string | undefined): void {
    const id = textIn(call, 'id')
    const providerData = { ...(id ? { id } : {}), ...(thoughtSignature ? { thoughtSignature } : {}) }
    this.#calls.add(this.#calls.count, {
      ...(id ? { id } : {}),
      tool: textIn(call, 'name') ?? '',
      text: call.args === undefined || call.args === null ? '' : JSON.stringify(call.args),
      ...(Object.keys(providerData).length > 0 ? { providerData } : {}),
    })
  }

  /** Emits an unreadable call as the model wrote it, so the model can correct it. */
  #rescue(): boolean {
    if (this.#finish !== 'MALFORMED_FUNCTION_CALL') return false
    const tool = WRITTEN.map(form => form.exec(this.#words)?.[1]).find(name => name !== undefined)
    if (tool !== undefined) this.#calls.add(this.#calls.count, { tool, text: this.#words })
    return tool !== undefined
  }

  #checkBlocked(feedback: Tree): void {
    const reason = textIn(feedback, 'blockReason')
    if (reason === undefined) return
    const why = textIn(feedback, 'blockReasonMessage') ?? reason
    throw modelFailure(this.#provider, { kind: 'content_refused' }, `the upstream blocked the messages: ${why}`)
  }
}

const thoughtOf = (text: string, thoughtSignature: string | undefined): ModelEvent =>
  thoughtSignature ? { type: 'reasoning', text, providerData: { thoughtSignature, thought: true } } : { type: 'reasoning', text }

function usageOf(usage: Tree): Usage | undefined {
  const prompt = countIn(usage, 'promptTokenCount')
  const [said, thought] = [countIn(usage, 'candidatesTokenCount') ?? 0, countIn(usage, 'thoughtsTokenCount') ?? 0]
  if (prompt === undefined && said + thought === 0) return undefined
  const cached = Math.min(countIn(usage, 'cachedContentTokenCount') ?? 0, prompt ?? 0)
  return {
    input: (prompt ?? 0) + (countIn(usage, 'toolUsePromptTokenCount') ?? 0),
    output: said + thought,
    ...(cached > 0 ? { cached } : {}),
    ...(thought > 0 ? { reasoning: thought } : {}),
  }
}

const broken = (provider: string, reason: string, words: string) =>
  modelFailure(
    provider,
    { kind: 'bad_request', retryable: true },
    `the model wrote an unreadable answer (${reason})${words === '' ? '' : `: ${words}`}`
  )

const unsigned = (provider: string) =>
  modelFailure(provider, { kind: 'bad_request' }, 'the upstream requires the signature of an earlier thought, which is missing')
