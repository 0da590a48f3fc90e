import { appendFile } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import type { Tool } from '@svc/core/contracts'

export interface PostcardsConfig {
  /** The file that postcards are put into: this example's post office. */
  outbox: string
}

interface Postcard {
  readonly to: string
  readonly text: string
}

/** Sends a postcard. What has gone out cannot be taken back, so a person is asked before each. */
export function createSendPostcard({ outbox }: PostcardsConfig): Tool {
  return {
    description: 'Sends a postcard. It cannot be taken back; the person is asked before it goes out.',
    category: 'post',
    effects: ['write'],
    asks: true,
    timeoutMs: 5_000,
    parameters: {
      type: 'object',
      properties: {
        to: { type: 'string', minLength: 1, maxLength: 100, pattern: '^[^\\r\\n]+$', description: 'Who gets it, in one line' },
        text: { type: 'string', minLength: 1, maxLength: 500, description: 'What stands on it' },
      },
      required: ['to', 'text'],
      additionalProperties: false,
    },
    result: { type: 'object', properties: { sent: { type: 'boolean' } }, required: ['sent'] },
    async call(args, { signal }) {
      signal.throwIfAborted()
      const { to, text } = args as unknown as Postcard // its schema has been checked
      // the code alone: where the file lies is nothing for a model
      await appendFile(outbox, `${JSON.stringify({ to, text })}\n`).catch((error: unknown) => {
        throw new Error(`the post office is closed (${codeOf(error) ?? 'no reason given'})`)
      })
      return { content: [{ type: 'text', text: `The postcard to ${to} is on its way.` }], structured: { sent: true } }
    },
  }
}
