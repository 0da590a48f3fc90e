import assert from 'node:assert/strict'
import type { FinishReason, ModelEvent, ModelFailureKind, ModelRequest, Provider, ToolCallPart, Usage } from '@svc/core/contracts'
import { abortable, assertPlain, type caseMaker, type KitSubject } from './kit-case.ts'

/** A provider to be proved; it may live in another process. */
export interface ProviderSubject extends KitSubject {
  readonly provider: Provider
  /**
   * How many calls an upstream is serving for it now: must fall to 0 whenever nobody waits for them any more. Without it nothing shows that an abort reaches
   * the upstream, and the case of that skips itself.
   */
  connections?(): number | Promise<number>
}

/** Requests that make the provider behave in a certain way: directives, or a model name that a fake upstream knows. */
export interface ProviderRequests {
  /** Answered with text of two pieces at least, and `stop`. */
  readonly plain: ModelRequest
  /** Answered piece by piece, for longer than anybody reads. */
  readonly endless?: ModelRequest
  /** Not answered at all. */
  readonly silent?: ModelRequest
  /** Answered with these calls, in this order, and no text needed; `results` asks the next round. */
  readonly tools?: {
    readonly request: ModelRequest
    readonly calls: readonly Pick<ToolCallPart, 'tool' | 'arguments'>[]
    results?(calls: readonly ToolCallPart[]): ModelRequest
  }
  /** The same kind of calls, whose names and arguments come in pieces that are mixed with each other. */
  readonly pieces?: { readonly request: ModelRequest; readonly calls: readonly Pick<ToolCallPart, 'tool' | 'arguments'>[] }
  /** A call whose arguments are no JSON object: it comes with `invalid`. */
  readonly badArguments?: ModelRequest
  /** Cut by its `maxTokens`. */
  readonly length?: ModelRequest
  /** Answered with just this text, split wherever it hurts. */
  readonly unicode?: { readonly request: ModelRequest; readonly text: string }
  /** Answered with just this usage. */
  readonly usage?: { readonly request: ModelRequest; readonly usage: Usage }
  /** Answered with reasoning of just this text, before the text. */
  readonly reasoning?: { readonly request: ModelRequest; readonly text: string }
  /** Cut by the upstream's filter, which is an end and no failure. */
  readonly filtered?: ModelRequest
  readonly failures?: { readonly [K in ModelFailureKind]?: ModelRequest }
  /** Fails so after its first piece. */
  readonly midway?: { readonly request: ModelRequest; readonly kind: ModelFailureKind }
  /** Says when a retry makes sense: this many milliseconds. */
  readonly retryAfter?: { readonly request: ModelRequest; readonly ms: number }
  /** The connection breaks after the first piece. */
  readonly cut?: ModelRequest
  /** The answer ends as if it were whole, but it is not. */
  readonly endsEarly?: ModelRequest
  /** After the first piece comes something that cannot be read. */
  readonly malformed?: ModelRequest
  /** After the first piece nothing comes any more. */
  readonly stalled?: ModelRequest
}

export interface ProviderKitOptions {
  /** Streams at once; default 50. */
  readonly concurrent?: number
  /** Keys and the like, which no error may tell. */
  readonly secrets?: readonly string[]
}

/** Makes the cases of the provider kit. */
export type Make = ReturnType<typeof caseMaker<ProviderSubject>>

type Tools = NonNullable<ProviderRequests['tools']>

/** Every kind of failure: `Object.fromEntries(FAILURE_KINDS.map(kind => [kind, asks(kind)]))` are the `failures` of a provider whose models fail by name. */
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

/** The `tools` of a provider that answers this request by asking for the weather in Ulm and in Bern; in the next round it is sunny in both. `provider`: who the answer is by, where it matters. */
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

/** Which failures may pass when the same call is made again. */
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

/** Holds a whole answer against the contract. */
export function checkOrder(events: readonly ModelEvent[]): void {
  assertPlain(events, 'events')
  const finishes = events.filter(event => event.type === 'finish').length
  assert.equal(finishes, 1, `it finished ${finishes} times`)
  assert.equal(events.at(-1)?.type, 'finish', 'something came after finish')
  assert.ok(events.filter(event => event.type === 'usage').length <= 1, 'usage came twice')
  for (const event of events) CHECKS[event.type]?.(event as never)
  const calls = callsOf(events)
  assert.equal(new Set(calls.map(call => call.id)).size, calls.length, 'two tool calls share an id')
  assert.equal(
    calls.length > 0,
    finishOf(events) === 'tool_calls',
    `${calls.length} tool calls, but finish says ${finishOf(events)}`
  )
}

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
  usage({ usage }) {
    assert.ok([usage.input, usage.output, usage.cached, usage.reasoning].every(isCount), `usage is ${JSON.stringify(usage)}`)
    assert.ok(
      (usage.cached ?? 0) <= usage.input && (usage.reasoning ?? 0) <= usage.output,
      'cached is part of input, reasoning of output'
    )
  },
}

export const callsOf = (events: readonly ModelEvent[]): ToolCallPart[] => events.filter(event => event.type === 'tool_call')
export const textOf = (events: readonly ModelEvent[]): string =>
  events.map(event => (event.type === 'text' ? event.text : '')).join('')
export const usageOf = (events: readonly ModelEvent[]): Usage | undefined => events.find(event => event.type === 'usage')?.usage
export function finishOf(events: readonly ModelEvent[]): FinishReason | undefined {
  return events.find(event => event.type === 'finish')?.reason
}
