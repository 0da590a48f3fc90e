import { appendFile } from 'node:fs/promises'
import { codeOf } from '@svc/core'
import type { Tool } from '@svc/core/contracts'

export interface PostcardsConfig {
  /** File to write postcards to: the post office of this example. */
  outbox: string
}

interface Postcard {
  readonly to: string
  readonly text: string
}

/** Creates the tool `send_postcard`. Sending cannot be undone, so a person approves each call. */
export function createSendPostcard({ outbox }: PostcardsConfig): Tool {
  return {
    description: 'Sends a postcard. This cannot be undone, so a person must approve it.',
    category: 'post',
    effects: ['write'],
    asks: true,
    timeoutMs: 5_000,
    parameters: {
      type: 'object',
      properties: {
        to: { type: 'string', minLength: 1, maxLength: 100, pattern: '^[^\\r\\n]+$', description: 'Recipient, in a single line' },
        text: { type: 'string', minLength: 1, maxLength: 500, description: 'Text of the postcard' },
      },
      required: ['to', 'text'],
      additionalProperties: false,
    },
    result: { type: 'object', properties: { sent: { type: 'boolean' } }, required: ['sent'] },
    async call(args, { signal }) {
      signal.throwIfAborted()
      const { to, text } = args as unknown as Postcard // checked against the schema
      // only the error code, because a model must not see the path of the file
      await appendFile(outbox, `${JSON.stringify({ to, text })}\n`).catch((error: unknown) => {
        throw new Error(`the post office is closed (${codeOf(error) ?? 'no reason given'})`)
      })
      return { content: [{ type: 'text', text: `The postcard to ${to} is on its way.` }], structured: { sent: true } }
    },
  }
}
