import assert from 'node:assert/strict'
import type { FinishReason, ModelEvent, ModelFailureKind, ModelRequest, Provider, ToolCallPart, Usage } from '@svc/core/contracts'
import { abortable, assertPlain } from './kit-case.ts'

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
