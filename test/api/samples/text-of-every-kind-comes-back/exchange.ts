import { exchange, ok, say } from '../../exchange.ts'

const said = ['日本語', '👩‍👩‍👧‍👦', 'ﷺ‮abc', '\u0000\u0001', '<script>', '"', '\\', '\r\n', 'e\u0301', '\ud83d\udca9'.repeat(10)]

export default exchange({
  rule: 'keeps every character that a caller said',
  source: 'http-api.md "Message", content',
  steps: said.flatMap(message => [
    {
      request: say({ message: `x${message}x` }),
      expect: ok({
        response: `You said: x${message}x`,
        messages: [{ content: `x${message}x` }, { content: `You said: x${message}x` }],
      }),
    },
  ]),
})
