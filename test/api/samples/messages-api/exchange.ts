import { any, exact, exchange, get, MESSAGES_BODY, messagesRefused, ok, post } from '../../exchange.ts'

const messages = (body: object) => post('/v1/messages', { ...MESSAGES_BODY, ...body })

export default exchange({
  rule: 'answers the Messages API at /v1/messages, with errors in its form',
  source: 'issue 24, 1 and 6: routes; errors in the dialect',
  steps: [
    {
      request: messages({}),
      expect: ok(
        {
          type: 'message',
          role: 'assistant',
          model: 'local/local-1',
          content: [exact({ type: 'text', text: 'You said: hi' })],
          stop_reason: 'end_turn',
          usage: { output_tokens: any('number') },
        },
        { 'request-id': any('text') }
      ),
    },
    { request: post('/v1/messages/count_tokens?beta=true', MESSAGES_BODY), expect: ok(exact({ input_tokens: any('number') })) },
    { request: messages({ max_tokens: undefined }), expect: messagesRefused(400) },
    { request: messages({ messages: [] }), expect: messagesRefused(400) },
    { request: messages({ model: 'local/nope' }), expect: messagesRefused(404) },
    { request: post('/v1/messages', {}), expect: messagesRefused(400) },
    { request: post('/v1/messages/nothing', {}), expect: messagesRefused(404) },
    { request: get('/v1/messages/nothing'), expect: messagesRefused(404) },
  ],
})
