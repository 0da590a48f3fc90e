import type { PublicError, TurnEnd } from '@svc/core/contracts'
import { svcError } from '@svc/core'
import { API_CODES, errorEvent, eventOf, explain, replyOf, toPublicError, turnOf } from '@svc/api-types'
import { expect } from 'chai'

const publicError = (code: string, details: PublicError['details'] = {}): PublicError => ({
  code,
  message: 'in our words',
  details,
})

const end: TurnEnd = {
  type: 'end',
  requestId: 'r1',
  timestamp: '2026-01-01T00:00:00.000Z',
  conversationId: 'c1',
  status: 'completed',
  provider: 'p',
  model: 'm',
  usage: { input: 1, output: 2, total: 3 },
  durationMs: 1.6,
  toolsUsed: [{ tool: 't', callId: 'x', arguments: {}, success: true, durationMs: 0.7 }],
}

describe('a chat on the wire', () => {
  it('asks in camelCase what came in snake_case, and only what was given', () => {
    expect(turnOf({ message: 'a', conversation_id: 'c', max_tokens: 5 })).to.deep.equal({
      message: 'a',
      conversationId: 'c',
      maxTokens: 5,
    })
  })

  it('tells reply and end with whole milliseconds', () => {
    const { type: _type, ...reply } = end
    expect(replyOf({ ...reply, response: 'hi' })).to.deep.include({ response: 'hi', duration_ms: 2, tokens_used: end.usage })
    const cached = { input: 5, cached: 4, output: 2, total: 7 }
    expect(replyOf({ ...reply, usage: cached, response: '' }).tokens_used).to.deep.equal(cached)
    expect(eventOf({ ...end, usage: cached })).to.deep.include({ tokens_used: cached })
    expect(replyOf({ ...reply, response: '' }).tools_used[0]).to.deep.equal({
      tool: 't',
      call_id: 'x',
      arguments: {},
      success: true,
      duration_ms: 1,
    })
    expect(eventOf(end)).to.have.all.keys(
      'type',
      'request_id',
      'timestamp',
      'status',
      'provider',
      'model',
      'tokens_used',
      'duration_ms'
    )
  })

  it('tells what only happens within in the terms of the API', () => {
    const codes = (code: string, details?: PublicError['details']) => explain(publicError(code, details), 'r1').record.error_code
    expect(codes('MODEL_FAILED', { kind: 'network', provider: 'p' })).to.equal('PROVIDER_ERROR')
    expect(codes('MODEL_FAILED', { kind: 'context_too_long' })).to.equal('INVALID_VALUE')
    expect(codes('CONVERSATION_UNKNOWN', { conversationId: 'c' })).to.equal('INVALID_VALUE')
    expect(codes('STORE_UNAVAILABLE')).to.equal('UNAVAILABLE')
    for (const code of Object.keys(API_CODES).filter(key => key !== 'INTERNAL_ERROR')) expect(codes(code)).to.equal(code)
  })

  it('tells nothing of a fault of ours but the request', () => {
    for (const error of [
      publicError('SOMETHING_ELSE'),
      publicError('INTERNAL_ERROR'),
      toPublicError(new TypeError('secret')),
      toPublicError(undefined),
    ]) {
      const { record, internal } = explain(error, 'r1')
      expect(internal).to.equal(true)
      expect(record).to.deep.include({ error_code: 'INTERNAL_ERROR', details: { request_id: 'r1' } })
      expect(JSON.stringify(record)).to.not.match(/secret|in our words/)
    }
  })

  it('says when to try again', () => {
    expect(explain(publicError('CONVERSATION_BUSY', { retryAfterMs: 1500 }), 'r1')).to.include({ retryAfter: 2 })
    expect(explain(publicError('RATE_LIMITED', { retry_after: 7 }), 'r1')).to.include({ retryAfter: 7 })
  })

  it('takes an error as it was thrown, and tells it as an event', () => {
    const { record } = explain(toPublicError(svcError('PROVIDER_NOT_FOUND', 'no p', { details: { available: ['local'] } })), 'r1')
    expect(errorEvent(record)).to.deep.equal({
      type: 'error',
      error: 'no p',
      error_code: 'PROVIDER_NOT_FOUND',
      details: { available: ['local'] },
    })
  })
})
