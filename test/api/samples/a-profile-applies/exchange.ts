import { type Answer, chat, exchange, from, matching, ok, post, PROFILES } from '../../exchange.ts'

export default exchange({
  rule: 'lets the active profile decide model, tokens, tools and prompt of turns that do not say themselves',
  source: "decisions.md 1, which model answers; `tools` absent: the profile's list; profiles.yaml",
  together: 'switches',
  files: PROFILES,
  steps: [
    { request: chat({ message: 'one two three', model: 'local-small', tools: ['read_file'] }), expect: ok() },
    { request: post('/api/v1/profile/switch', { profile: 'short' }), expect: ok() },
    {
      request: chat({ message: 'one two three' }),
      expect: ([before]) =>
        ok({ model: 'local-small', response: 'You said: one', tokens_used: { input: from(inputOf(before) + 5) } }),
    },
    { request: chat({ message: 'one two three', max_tokens: 6 }), expect: ok({ response: 'You said: one two' }) },
    {
      request: chat({ message: '/tool current_time {}', max_tokens: 100 }),
      expect: ok({ response: matching(/not offered/), tools_used: [] }),
    },
    {
      request: chat({ message: '/tool current_time {}', max_tokens: 100, tools: ['current_time'] }),
      expect: ok({ tools_used: [{ tool: 'current_time' }] }),
    },
  ],
})

const inputOf = (answer: Answer | undefined) => (answer!.body as { tokens_used: { input: number } }).tokens_used.input
