import assert from 'node:assert/strict'
import type {
  EmbedRequest,
  FinishReason,
  Json,
  ModelEvent,
  ModelFailureKind,
  ModelFeature,
  ModelRequest,
  Provider,
  ToolCallPart,
  Usage,
} from '@svc/core/contracts'
import { abortable, assertPlain, type caseMaker, type KitSubject } from './kit-case.ts'

/** A provider to test. It can run in another process. */
export interface ProviderSubject extends KitSubject {
  readonly provider: Provider
  /**
   * Number of calls that the upstream is serving for it now. It must fall to 0 when no caller waits. Without it, the case for
   * aborts skips itself.
   */
  connections?(): number | Promise<number>
  /**
   * The body of the last request that the upstream received. With it, the kit finds features that the provider supports but does not
   * send.
   */
  sent?(): unknown
  /** Features with a sample that the provider serves without the upstream, which does not receive them. */
  readonly own?: readonly ModelFeature[]
}

/** Requests that show features of `features.supports`. The kit requires the samples of the features that the provider supports. */
export interface FeatureSamples {
  /** Answered with exactly this text, because a text of `stop` follows. */
  readonly stop?: { readonly request: ModelRequest; readonly text: string; readonly stopText?: string }
  /** Has a `seed`: the same request gets the same answer. */
  readonly seed?: ModelRequest
  /** Has `n` above 1. */
  readonly n?: ModelRequest
  /** Has `logprobs` above 0. */
  readonly logprobs?: ModelRequest
  /** Its `toolChoice` names a tool. It is not the first of `tools`. */
  readonly tool_choice?: ModelRequest
  /** Answered with tool calls. The kit sets `toolCallDeltas`. */
  readonly tool_call_deltas?: ModelRequest
  /** Has `responseFormat`. */
  readonly json?: ModelRequest
  /** Has `responseSchema`. */
  readonly response_schema?: ModelRequest
  /** Has at least two different texts, and `dimensions` if the model supports them. */
  readonly embeddings?: EmbedRequest
}

/** Requests with a certain behavior, selected by directives or by the model name of a fake upstream. */
export interface ProviderRequests {
  /** Answered with text of at least two pieces, and `stop`. */
  readonly plain: ModelRequest
  /** Answered piece by piece without an end. */
  readonly endless?: ModelRequest
  /** Not answered at all. */
  readonly silent?: ModelRequest
  /** Answered with these calls in this order; text is optional. `results` creates the request of the next round. */
  readonly tools?: {
    readonly request: ModelRequest
    readonly calls: readonly Pick<ToolCallPart, 'tool' | 'arguments'>[]
    results?(calls: readonly ToolCallPart[]): ModelRequest
  }
  /** The same with interleaved pieces of names and arguments. */
  readonly pieces?: { readonly request: ModelRequest; readonly calls: readonly Pick<ToolCallPart, 'tool' | 'arguments'>[] }
  /** A call whose arguments are not a JSON object: it has `invalid`. */
  readonly badArguments?: ModelRequest
  /** Cut off by its `maxTokens`. */
  readonly length?: ModelRequest
  /** Answered with exactly this text, split at difficult places. */
  readonly unicode?: { readonly request: ModelRequest; readonly text: string }
  /** Answered with exactly this usage. */
  readonly usage?: { readonly request: ModelRequest; readonly usage: Usage }
  /** Answered with exactly this reasoning before the text. */
  readonly reasoning?: { readonly request: ModelRequest; readonly text: string }
  /** Cut off by the filter of the upstream, which is an end and not a failure. */
  readonly filtered?: ModelRequest
  readonly failures?: { readonly [K in ModelFailureKind]?: ModelRequest }
  /** Fails in this way after its first piece. */
  readonly midway?: { readonly request: ModelRequest; readonly kind: ModelFailureKind }
  /** Reports that a retry makes sense after this many milliseconds. */
  readonly retryAfter?: { readonly request: ModelRequest; readonly ms: number }
  /** The connection breaks after the first piece. */
  readonly cut?: ModelRequest
  /** The answer ends early as if it were complete. */
  readonly endsEarly?: ModelRequest
  /** Sends invalid data after the first piece. */
  readonly malformed?: ModelRequest
  /** Sends nothing after the first piece. */
  readonly stalled?: ModelRequest
  /** Samples of the features in `features.supports`. */
  readonly features?: FeatureSamples
  /**
   * For a provider without `sent`: for each feature two requests, with the feature and without it, that get different answers.
   */
  readonly effects?: { readonly [F in ModelFeature]?: readonly [ModelRequest, ModelRequest] }
  /** Has `native`, and is answered with these `native` events. */
  readonly native?: {
    readonly request: ModelRequest
    readonly events: readonly { readonly event?: string; readonly data: Json }[]
  }
}

export interface ProviderKitOptions {
  /** Number of concurrent streams. Default 50. */
  readonly concurrent?: number
  /** Keys and other secrets that errors must not contain. */
  readonly secrets?: readonly string[]
}

/** Creates the cases of the provider kit. */
export type Make = ReturnType<typeof caseMaker<ProviderSubject>>

type Tools = NonNullable<ProviderRequests['tools']>

/**
 * All kinds of failures. For a provider whose models fail by name, `Object.fromEntries(FAILURE_KINDS.map(kind => [kind,
 * asks(kind)]))` are the `failures`.
 */
export const FAILURE_KINDS: readonly ModelFailureKind[] = [
  'rate_limited',
  'overloaded',
  'bad_request',
  'authentication',
  'context_too_long',
  'content_refused',
  'network',
  'timeout',
]

/**
 * The `tools` sample of a provider that answers this request with calls for the weather in Ulm and in Bern. The results of the
 * next round are sunny. `provider`: the provider of the answer, if it matters.
 */
export const weatherRound = (request: ModelRequest, provider?: string): Required<Tools> => ({
  request,
  calls: ['Ulm', 'Bern'].map(city => ({ tool: 'weather', arguments: { city } })),
  results: calls => ({
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', parts: calls, ...(provider === undefined ? {} : { provider }) },
      {
        role: 'tool',
        parts: calls.map(({ id, tool }) => ({
          type: 'tool_result',
          id,
          tool,
          content: [{ type: 'text', text: 'sunny' }],
          isError: false,
        })),
      },
    ],
  }),
})

/** Failures after which the same call can succeed later. */
export const RETRYABLE: Readonly<Record<ModelFailureKind, boolean>> = {
  rate_limited: true,
  overloaded: true,
  network: true,
  timeout: true,
  bad_request: false,
  authentication: false,
  context_too_long: false,
  content_refused: false,
}

export async function readAll(provider: Provider, request: ModelRequest): Promise<ModelEvent[]> {
  return Array.fromAsync(provider.chat(request, abortable().ctx))
}

/** Checks a complete answer against the contract. */
export function checkOrder(events: readonly ModelEvent[]): void {
  assertPlain(events, 'events')
  const finished = events.filter(event => event.type === 'finish').map(choiceOf)
  assert.equal(finished.filter(choice => choice === 0).length, 1, `it finished ${finished.length} times`)
  assert.equal(new Set(finished).size, finished.length, 'an answer of `n` finished twice')
  const last = events.at(-1)
  assert.ok(last?.type === 'finish' && choiceOf(last) === 0, 'something came after finish')
  assert.ok(events.filter(event => event.type === 'usage').length <= 1, 'usage came twice')
  for (const event of events) CHECKS[event.type]?.(event as never)
  for (const choice of new Set(finished)) checkCalls(ofChoice(events, choice))
}

function checkCalls(events: readonly ModelEvent[]): void {
  const calls = events.filter(event => event.type === 'tool_call')
  const reason = events.find(event => event.type === 'finish')?.reason
  assert.equal(new Set(calls.map(call => call.id)).size, calls.length, 'two tool calls share an id')
  assert.equal(calls.length > 0, reason === 'tool_calls', `${calls.length} tool calls, but finish says ${reason}`)
}

/** The number of the answer that an event belongs to. */
export const choiceOf = (event: ModelEvent): number => ('choice' in event ? (event.choice ?? 0) : 0)
export const ofChoice = (events: readonly ModelEvent[], choice: number): ModelEvent[] =>
  events.filter(event => choiceOf(event) === choice)

const isCount = (value: number | undefined) => value === undefined || (Number.isInteger(value) && value >= 0)

const CHECKS: { readonly [K in ModelEvent['type']]?: (event: Extract<ModelEvent, { type: K }>) => void } = {
  text: ({ text }) => assert.ok(typeof text === 'string' && text !== '', 'a piece without text'),
  reasoning: ({ text }) => assert.equal(typeof text, 'string', 'reasoning without text'),
  tool_call(call) {
    assert.ok(call.id !== '' && call.tool !== '', 'a tool call without id or name')
    assert.ok(
      typeof call.arguments === 'object' && call.arguments !== null && !Array.isArray(call.arguments),
      'arguments are an object'
    )
  },
  tool_call_delta: ({ index, id, tool, text }) =>
    assert.ok(isCount(index) && id !== '' && tool !== '' && typeof text === 'string', 'a delta without index, id, name or text'),
  logprobs({ tokens }) {
    for (const { token, logprob } of tokens.flatMap(one => [one, ...(one.top ?? [])]))
      assert.ok(typeof token === 'string' && Number.isFinite(logprob) && logprob <= 0, `the logprob of "${token}" is ${logprob}`)
  },
  usage({ usage }) {
    assert.ok(
      [usage.input, usage.output, usage.cached, usage.cacheWrite, usage.reasoning].every(isCount),
      `usage is ${JSON.stringify(usage)}`
    )
    assert.ok(
      (usage.cached ?? 0) + (usage.cacheWrite ?? 0) <= usage.input && (usage.reasoning ?? 0) <= usage.output,
      'cached and cacheWrite are parts of input, reasoning of output'
    )
  },
}

export const callsOf = (events: readonly ModelEvent[]): ToolCallPart[] =>
  ofChoice(events, 0).filter(event => event.type === 'tool_call')
export const textOf = (events: readonly ModelEvent[]): string =>
  ofChoice(events, 0)
    .map(event => (event.type === 'text' ? event.text : ''))
    .join('')
export const usageOf = (events: readonly ModelEvent[]): Usage | undefined => events.find(event => event.type === 'usage')?.usage
export function finishOf(events: readonly ModelEvent[]): FinishReason | undefined {
  return ofChoice(events, 0).find(event => event.type === 'finish')?.reason
}
