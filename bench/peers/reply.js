// The exact chat response of svc, so that every peer writes the same bytes.
import { randomUUID } from 'node:crypto'

export const MODEL = { provider: 'local', model: 'local-1' }

export const replyTo = message => ({
  success: true,
  response: `You said: ${message}`,
  ...MODEL,
  conversation_id: `conv_${randomUUID().replaceAll('-', '')}`,
  tokens_used: { input: 15, output: 14, total: 29 },
  duration_ms: 1,
  tools_used: [],
})
