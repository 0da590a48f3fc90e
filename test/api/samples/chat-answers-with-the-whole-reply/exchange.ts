import { any, chat, exact, exchange, from, matching, ok } from '../../exchange.ts'

export default exchange({
  rule: 'answers a chat with reply, provider, model, conversation, tokens, time and tools, and nothing else',
  source: 'http-api.md "Chat response (200)"; decisions.md 1, tokens_used',
  steps: [
    {
      request: chat({ message: 'hello there' }),
      expect: ok(
        exact({
          success: true,
          response: 'You said: hello there',
          provider: 'local',
          model: 'local-1',
          conversation_id: any('text'),
          tokens_used: exact({ input: from(1), output: from(1), total: any('integer') }),
          duration_ms: any('integer'),
          tools_used: [],
        }),
        { 'content-type': matching(/^application\/json/) }
      ),
    },
  ],
})
