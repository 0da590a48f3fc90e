import { beside, chat, exchange, including, matching, ok, post, refused, stream } from '../../exchange.ts'

const forbidden = refused(400, 'INVALID_VALUE', {
  field: 'tools',
  value: 'shred',
  allowed: including('current_time'),
  reason: matching(/plan/),
})

export default exchange({
  rule: 'refuses a tool that the mode forbids, and does not offer it unnamed',
  source: 'decisions.md 1, `tools` absent, `[]`: a tool that the mode forbids; modes: real effect',
  together: 'switches',
  config: { plugins: [beside('./plugin.ts', import.meta.url)] },
  steps: [
    {
      request: chat({ message: '/tool shred {}', tools: ['shred'] }),
      expect: ok({ tools_used: [{ tool: 'shred', success: true }] }),
    },
    { request: post('/api/v1/mode/switch', { mode: 'plan' }), expect: ok() },
    { request: chat({ message: '/tool shred {}', tools: ['shred'] }), expect: forbidden },
    { request: stream({ message: '/tool shred {}', tools: ['shred'] }), expect: forbidden },
    { request: chat({ message: '/tool shred {}' }), expect: ok({ response: matching(/not offered/), tools_used: [] }) },
  ],
})
