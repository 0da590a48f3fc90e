import { exchange, matching, reply, stream } from '../../exchange.ts'

export default exchange({
  rule: 'sends each piece of the reply as a token with an index from 0',
  source: 'http-api.md "Events", token',
  steps: [
    {
      request: stream({ message: 'one two three' }),
      expect: {
        status: 200,
        text: matching(
          /event: token\ndata: \{"type":"token","content":"[^"]+","index":0\}\n\n.*event: token\ndata: \{"type":"token","content":"[^"]+","index":3\}\n\n/s
        ),
        events: [{ event: 'start' }, reply('You said: one two three'), { event: 'end' }],
      },
    },
  ],
})
