import { expect } from 'chai'
import { failureOf } from '../src/google-provider.ts'

const said = (status: string, message = 'words', details: readonly unknown[] = []) => ({
  error: { code: 400, message, status, details },
})
const delay = (retryDelay: unknown) => [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }]

describe('an error of the Gemini API', () => {
  for (const [status, kind] of [
    ['RESOURCE_EXHAUSTED', 'rate_limited'],
    ['UNAVAILABLE', 'overloaded'],
    ['INTERNAL', 'overloaded'],
    ['DEADLINE_EXCEEDED', 'timeout'],
    ['UNAUTHENTICATED', 'authentication'],
    ['PERMISSION_DENIED', 'authentication'],
    ['NOT_FOUND', 'bad_request'],
  ] as const)
    it(`of status ${status} is ${kind}, in an object or in a list`, () => {
      expect(failureOf(200, said(status))).to.deep.equal({ kind, message: 'words' })
      expect(failureOf(200, [said(status)])).to.deep.equal({ kind, message: 'words' })
    })

  it('is one of authentication where the key is wrong, though it says that an argument is', () => {
    expect(failureOf(400, said('INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.')).kind).to.equal(
      'authentication'
    )
    expect(failureOf(400, said('INVALID_ARGUMENT', 'x', [{ reason: 'API_KEY_INVALID' }])).kind).to.equal('authentication')
  })

  it('tells limit and count of a context that is too long', () => {
    const message = 'The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).'
    const failure = { kind: 'context_too_long', message, count: 3_475_108, limit: 1_048_576 }
    expect(failureOf(400, said('INVALID_ARGUMENT', message))).to.deep.equal(failure)
  })

  for (const [text, ms] of [
    ['34.4s', 34_400],
    ['0.0001s', 1],
    ['999999999s', 86_400_000],
    ['soon', undefined],
    [7, undefined],
    ['-1s', undefined],
  ] as const)
    it(`reads the delay ${JSON.stringify(text)}`, () => {
      expect(failureOf(429, said('RESOURCE_EXHAUSTED', 'x', delay(text))).retryAfterMs).to.equal(ms)
    })

  it('leaves to the status what it does not know', () => {
    expect(failureOf(400, said('INVALID_ARGUMENT', 'odd'))).to.deep.equal({ message: 'odd' })
    for (const body of [
      undefined,
      '<html>',
      [],
      [null],
      { error: 'x' },
      { error: { status: 'constructor', details: [null, 7] } },
    ])
      expect(failureOf(500, body)).to.deep.equal({})
  })
})
