import { any, endpointRefused, exchange, get, ok, post } from '../../exchange.ts'

const MESSAGES = [{ role: 'user', content: 'hi' }]

export default exchange({
  rule: 'answers chat completions, embeddings and models below /v1, with errors in their form',
  source: 'docs/reference/endpoints.md, Chat completions',
  steps: [
    {
      request: post('/v1/chat/completions?beta=true', { model: 'local/local-1', messages: MESSAGES }),
      expect: ok({ object: 'chat.completion', choices: [any('object')] }),
    },
    {
      request: post('/v1/embeddings', { model: 'local/local-1', input: 'hi' }),
      expect: ok({ object: 'list', data: [any('object')] }),
    },
    { request: get('/v1/models'), expect: ok({ object: 'list', data: any('array') }) },
    { request: get('/v1/models/local%2Flocal-1'), expect: ok({ id: 'local/local-1', object: 'model' }) },
    { request: get('/v1/models/nope'), expect: endpointRefused(404) },
    { request: post('/v1/chat/completions', { messages: MESSAGES }), expect: endpointRefused(400) },
    { request: get('/v1/nothing'), expect: endpointRefused(404) },
  ],
})
