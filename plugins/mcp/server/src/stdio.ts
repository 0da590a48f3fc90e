import type { Readable, Writable } from 'node:stream'
import type { Use } from '@svc/core'
import { follow } from './notices.ts'
import { createProtocolServer } from './protocol-server.ts'
import type { Published } from './published.ts'
import { loadSdk } from './sdk.ts'
import { sieve } from './sieve.ts'

/** One client on a line of its own. */
export interface StdioLine {
  /** Settled when the line has ended: the client has closed its side, or `close` was called. */
  readonly ended: Promise<void>
  close(): Promise<void>
}

/** Bytes of one message. */
const MESSAGE_BYTES = 10 * 1_048_576

/** Serves both eras over a pair of streams; `own` is whose requests they are. */
export async function serveStdio(
  published: Published,
  lines: { input: Readable; output: Writable },
  own: Use
): Promise<StdioLine> {
  const sdk = await loadSdk()
  const stdio = await import('@modelcontextprotocol/server/stdio')
  const ended = Promise.withResolvers<void>()
  const messages = sieve(lines, MESSAGE_BYTES)
  const transport = new stdio.StdioServerTransport(messages, lines.output, { maxBufferSize: 2 * MESSAGE_BYTES })
  const handle = stdio.serveStdio(
    () => {
      const server = createProtocolServer(sdk, published, own)
      server.onclose = follow(server, sdk, published, own)
      return server
    },
    {
      transport,
      onerror: err => published.log.debug({ err }, 'the client on the line did something wrong'),
    }
  )
  const over = () => ended.resolve()
  messages.once('end', over).once('close', over)
  own.signal.addEventListener('abort', () => void handle.close(), { once: true })
  return {
    ended: ended.promise,
    async close() {
      await handle.close()
      ended.resolve()
    },
  }
}
