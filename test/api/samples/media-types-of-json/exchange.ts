import { chat, exchange, ok } from '../../exchange.ts'

export default exchange({
  rule: 'takes JSON declared with a charset of UTF-8, in any case',
  source: 'http-api.md: Content-Type: application/json',
  steps: ['application/json', 'application/json; charset=utf-8', 'Application/JSON;Charset="UTF-8"'].map(type => ({
    request: { ...chat({ message: 'a' }), headers: { 'content-type': type } },
    expect: ok({ response: 'You said: a' }),
  })),
})
