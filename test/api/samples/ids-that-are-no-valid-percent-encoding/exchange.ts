import { exchange, get, oneOf } from '../../exchange.ts'

export default exchange({
  rule: 'answers an id that cannot be decoded with an error record',
  source: 'issue 3, bad input: absurd ids',
  steps: ['%', '%zz', '%ff', '%c0%ae'].map(id => ({
    request: get(`/api/v1/conversations/${id}`),
    expect: { status: oneOf(400, 404), body: { success: false, error_code: 'INVALID_VALUE' } },
  })),
})
