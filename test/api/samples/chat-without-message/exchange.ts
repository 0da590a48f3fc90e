import { chat, exchange, missing, say, stream } from '../../exchange.ts'

export default exchange({
  rule: 'refuses a chat without message with the fields it needs and the fields it was given',
  source: 'http-api.md "Errors" rule 1',
  steps: [
    { request: chat({ model: 'local-1', max_tokens: 5 }), expect: missing(['message'], ['model', 'max_tokens']) },
    { request: stream({ tools: [] }), expect: missing(['message'], ['tools']) },
    { request: say({ provider: 'local' }), expect: missing(['message'], ['provider']) },
    { request: chat({}), expect: missing(['message'], []) },
  ],
})
