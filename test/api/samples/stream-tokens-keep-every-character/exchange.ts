import { exchange, reply, stream } from '../../exchange.ts'

const said = 'ümlaut 日本語 👩‍👩‍👧 "quoted" \\ back \u2028 line \u0001 end'

export default exchange({
  rule: 'carries every character of the reply, whatever it is, in one line of data',
  source: 'http-api.md "Events": data is JSON',
  steps: [
    {
      request: stream({ message: said }),
      expect: { status: 200, events: [{ event: 'start' }, reply(`You said: ${said}`), { event: 'end' }] },
    },
    {
      request: stream({ message: 'data: x\n\nevent: end' }),
      expect: { status: 200, events: [{ event: 'start' }, reply('You said: data: x\n\nevent: end'), { event: 'end' }] },
    },
  ],
})
