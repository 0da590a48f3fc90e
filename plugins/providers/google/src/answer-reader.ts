import type { FinishReason, Json, ModelEvent, TokenLogprob, Usage } from '@svc/core/contracts'
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
  ofChoice,
  tooFewAnswers,
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

/** Options of a reader. */
export interface ReaderOptions {
  /** Number of answers. */
  readonly n?: number
  /** Also returns the original responses. */
  readonly isNative?: boolean
}

/** Reads the frames of one streamed call, or one whole response. Each frame is a response with the new parts of one answer, or of `n`. */
export class AnswerReader implements FrameReader {
  readonly #provider: string
  readonly #upstream: Pick<Upstream, 'failed'>
  readonly #first: CandidateReader
  readonly #others: readonly CandidateReader[]
  readonly #isNative: boolean
  #usage: Tree = {}

  constructor(provider: string, upstream: Pick<Upstream, 'failed'>, { n = 1, isNative = false }: ReaderOptions = {}) {
    this.#provider = provider
    this.#upstream = upstream
    this.#isNative = isNative
    const [first, ...others] = Array.from({ length: n }, () => new CandidateReader(provider))
    this.#first = first!
    this.#others = others
  }

  frame(data: string, _event: string, emit: Emit): void {
    const frame = JSON.parse(data) as unknown
    if (!isTree(frame)) return
    if (frame.error !== undefined) throw this.#upstream.failed(200, frame)
    if (this.#isNative) emit({ type: 'native', data: frame as Json })
    this.#take(frame, emit)
  }

  whole(body: unknown, emit: Emit): void {
    if (!isTree(body) || !(Array.isArray(body.candidates) || isTree(body.promptFeedback))) throw malformed(this.#provider)
    if (this.#isNative) emit({ type: 'native', data: body as Json })
    this.#take(body, emit)
  }

  end(emit: Emit): void {
    if (this.#others.some(other => !other.begun)) throw tooFewAnswers(this.#provider, this.#others.length + 1)
    for (const [at, other] of this.#others.entries()) {
      const own = ofChoice(at + 1, emit)
      own(other.end(own))
    }
    const finish = this.#first.end(emit)
    const usage = usageOf(this.#usage)
    if (usage) emit({ type: 'usage', usage })
    emit(finish)
  }

  #take(frame: Tree, emit: Emit): void {
    const candidates: readonly unknown[] = Array.isArray(frame.candidates) ? frame.candidates : []
    if (candidates.length === 0) this.#checkBlocked(treeIn(frame, 'promptFeedback'))
    if (this.#others.length === 0) {
      if (candidates.length > 0) this.#first.read(candidates[0], emit)
    } else for (const candidate of candidates) this.#takeOne(candidate, emit)
    if (isTree(frame.usageMetadata)) this.#usage = frame.usageMetadata
  }

  #takeOne(candidate: unknown, emit: Emit): void {
    const index = countIn(candidate, 'index') ?? 0
    if (index > this.#others.length) throw malformed(this.#provider)
    if (index === 0) this.#first.read(candidate, emit)
    else this.#others[index - 1]!.read(candidate, ofChoice(index, emit))
  }

  #checkBlocked(feedback: Tree): void {
    const reason = textIn(feedback, 'blockReason')
    if (reason === undefined) return
    const why = textIn(feedback, 'blockReasonMessage') ?? reason
    throw modelFailure(this.#provider, { kind: 'content_refused' }, `the upstream blocked the messages: ${why}`)
  }
}

/** Reads the pieces of one answer. */
class CandidateReader {
  readonly #provider: string
  readonly #calls: ToolCalls
  readonly #cited = new Set<string>()
  #finish: string | undefined
  #words = ''
  begun = false

  constructor(provider: string) {
    this.#provider = provider
    this.#calls = new ToolCalls(provider)
  }

  read(candidate: unknown, emit: Emit): void {
    this.begun = true
    const { parts } = treeIn(candidate, 'content')
    if (Array.isArray(parts)) for (const part of parts) this.#part(part, emit)
    const tokens = tokensOf(treeIn(candidate, 'logprobsResult'))
    if (tokens.length > 0) emit({ type: 'logprobs', tokens })
    for (const source of sourcesOf(candidate)) this.#cite(source, emit)
    this.#finish = textIn(candidate, 'finishReason') ?? this.#finish
    this.#words = textIn(candidate, 'finishMessage') ?? this.#words
  }

  /** Emits the calls, and returns the end. */
  end(emit: Emit): ModelEvent {
    if (this.#finish === undefined) throw cutShort(this.#provider)
    if (this.#finish === 'MISSING_THOUGHT_SIGNATURE') throw unsigned(this.#provider)
    if (BROKEN.has(this.#finish) && !this.#rescue()) throw broken(this.#provider, this.#finish, this.#words)
    const reason = BROKEN.has(this.#finish) ? 'stop' : (FINISHES.get(this.#finish) ?? 'content_filter')
    // Each call comes whole, so the calls of a cut answer are valid. The calls of a filtered answer are dropped.
    const called = reason !== 'content_filter' && this.#calls.count > 0
    if (called) this.#calls.emit(emit)
    return { type: 'finish', reason: called ? 'tool_calls' : reason }
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

  /** Frames repeat the sources of the frames before. */
  #cite(source: unknown, emit: Emit): void {
    const [url, title] = [textIn(source, 'uri'), textIn(source, 'title')]
    if (url === undefined || this.#cited.has(url) || this.#cited.size >= MOST_SOURCES) return
    this.#cited.add(url)
    emit({ type: 'citation', citation: { url, ...(title === undefined ? {} : { title }) } })
  }
}

const MOST_SOURCES = 1000

/** The sources of an answer: of quotations, and of a search. */
function sourcesOf(candidate: unknown): readonly unknown[] {
  const { citationSources } = treeIn(candidate, 'citationMetadata')
  const { groundingChunks } = treeIn(candidate, 'groundingMetadata')
  return [
    ...(Array.isArray(citationSources) ? (citationSources as unknown[]) : []),
    ...(Array.isArray(groundingChunks) ? groundingChunks.map(chunk => treeIn(chunk, 'web')) : []),
  ]
}

function tokensOf({ chosenCandidates, topCandidates }: Tree): TokenLogprob[] {
  const tops: readonly unknown[] = Array.isArray(topCandidates) ? topCandidates : []
  return (Array.isArray(chosenCandidates) ? (chosenCandidates as unknown[]) : []).flatMap((chosen, at) => {
    const token = tokenOf(chosen)
    const { candidates } = isTree(tops[at]) ? tops[at] : {}
    const top = Array.isArray(candidates) ? candidates.flatMap(tokenOf) : []
    return token.map(one => (top.length > 0 ? { ...one, top } : one))
  })
}

/** JSON has no -Infinity. */
const LEAST = -9999

function tokenOf(wire: unknown): TokenLogprob[] {
  const token = textIn(wire, 'token')
  const { logProbability: value } = isTree(wire) ? wire : {}
  if (token === undefined) return []
  return [{ token, logprob: typeof value === 'number' && Number.isFinite(value) ? Math.min(value, 0) : LEAST }]
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
