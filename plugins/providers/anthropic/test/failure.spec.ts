import { expect } from 'chai'
import { failureOf } from '../src/anthropic-provider.ts'

const said = (type: string, message = 'words') => ({ type: 'error', error: { type, message }, request_id: 'req_1' })

describe('an error of the Messages API', () => {
  for (const [type, kind] of [
    ['rate_limit_error', 'rate_limited'],
    ['overloaded_error', 'overloaded'],
    ['api_error', 'overloaded'],
    ['timeout_error', 'timeout'],
    ['authentication_error', 'authentication'],
    ['permission_error', 'authentication'],
    ['billing_error', 'authentication'],
    ['not_found_error', 'bad_request'],
    ['request_too_large', 'context_too_long'],
  ] as const)
    it(`of type ${type} is ${kind}`, () => {
      expect(failureOf(200, said(type))).to.deep.equal({ kind, message: 'words' })
    })

  for (const [message, count, limit] of [
    ['prompt is too long: 208310 tokens > 200000 maximum', 208_310, 200_000],
    ['input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length', 178_959, 200_000],
  ] as const)
    it(`tells limit and count of "${message}"`, () => {
      const failure = failureOf(400, said('invalid_request_error', message))
      expect(failure).to.deep.equal({ kind: 'context_too_long', message, count, limit })
    })

  it('knows a refusal of content by its words', () => {
    const message = 'Output blocked by content filtering policy'
    expect(failureOf(400, said('invalid_request_error', message)).kind).to.equal('content_refused')
  })

  it('leaves to the status what it does not know', () => {
    expect(failureOf(400, said('invalid_request_error', 'messages: odd'))).to.deep.equal({ message: 'messages: odd' })
    for (const body of [undefined, '<html>', [], { error: 'x' }, { error: { type: 'constructor' } }, said('new_error')])
      expect(failureOf(500, body)).to.not.have.property('kind')
  })
})
