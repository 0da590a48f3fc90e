import { beside, chat, exchange, ok } from '../../exchange.ts'

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const ask = (traceparent: string | undefined) => ({
  ...chat({ message: 'a', provider: 'tracer', tools: ['trace_of'] }),
  ...(traceparent === undefined ? {} : { headers: { traceparent } }),
})
const expected = (trace: string) => ok({ response: `provider ${trace}, tool ${trace}` })

export default exchange({
  rule: 'takes up a W3C traceparent and passes it on to providers and tools; what is none is left out',
  source: 'issue 4, 3: W3C traceparent taken up and passed on to providers and tools',
  together: 'parts',
  config: { plugins: [beside('./plugin.ts', import.meta.url)] },
  steps: [
    { request: ask(TRACE), expect: expected(TRACE) },
    ...[undefined, 'nonsense', TRACE.replace('00-', 'ff-'), `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, TRACE.toUpperCase()].map(
      trace => ({
        request: ask(trace),
        expect: expected('none'),
      })
    ),
  ],
})
