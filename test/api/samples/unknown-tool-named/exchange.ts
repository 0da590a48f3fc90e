import { any, chat, exchange, including, invalid, refused, stream } from '../../exchange.ts'

const named = { field: 'tools', value: 'fly', allowed: including('current_time', 'read_file'), reason: any('text') }

export default exchange({
  rule: 'refuses an unknown tool with those that are allowed',
  source: 'decisions.md 1, unknown tool named in `tools`',
  steps: [
    { request: chat({ message: 'a', tools: ['current_time', 'fly'] }), expect: refused(400, 'INVALID_VALUE', named) },
    { request: stream({ message: 'a', tools: ['fly'] }), expect: refused(400, 'INVALID_VALUE', named) },
    { request: chat({ message: 'a', tools: ['__proto__'] }), expect: invalid('tools') },
  ],
})
