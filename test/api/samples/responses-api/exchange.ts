import { any, type Answer, endpointRefused, exchange, field, get, ok, post, remove } from '../../exchange.ts'

const asked = (body: object) => post('/v1/responses', { model: 'local/local-1', input: 'hi', ...body })
const stored = (answer: Answer | undefined, more = '') => `/v1/responses/${field(answer, 'id')}${more}`

export default exchange({
  rule: 'stores responses that ask for it, and answers with them until they are deleted',
  source: 'docs/reference/endpoints.md, Responses',
  steps: [
    { request: asked({ store: true }), expect: ok({ object: 'response', status: 'completed', store: true }) },
    { request: ([first]) => get(stored(first)), expect: ([first]) => ok({ id: field(first, 'id'), status: 'completed' }) },
    { request: ([first]) => get(stored(first, '/input_items')), expect: ok({ object: 'list', data: any('array') }) },
    {
      request: ([first]) => asked({ previous_response_id: field(first, 'id'), store: false }),
      expect: ([first]) => ok({ previous_response_id: field(first, 'id'), status: 'completed' }),
    },
    { request: ([first]) => remove(stored(first)), expect: ok({ deleted: true }) },
    { request: ([first]) => get(stored(first)), expect: endpointRefused(404) },
    { request: asked({ input: '/delay 20000\nhi', background: true }), expect: ok({ background: true }) },
    { request: answers => post(stored(answers[6], '/cancel'), undefined), expect: ok({ status: 'cancelled' }) },
    { request: asked({ model: 'local/nope' }), expect: endpointRefused(404) },
  ],
})
