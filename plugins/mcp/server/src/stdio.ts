import { PassThrough, type Readable, type Writable } from 'node:stream'
import { type CallContext, isTree } from '@svc/core'
import { deeper, readLines } from '@svc/mcp-protocol'
import { DEEPEST } from './http-endpoint.ts'
import { type HttpAnswer, notRpc, overLong, tooDeep, unreadable } from './messages.ts'
import { createProtocolServer, follow } from './protocol-server.ts'
import type { Published } from './published.ts'
import { loadSdk } from './sdk.ts'

/** The connection of one client over a pair of streams. */
export interface StdioConnection {
  /** Resolves when the client closes its stream, or after `close`. */
  readonly ended: Promise<void>
  close(): Promise<void>
}

/** Maximum size of a message, in bytes. */
const MESSAGE_BYTES = 10 * 1_048_576

/** Serves both eras over a pair of streams. `own` is the call context of all requests. */
export async function serveStdio(published: Published, streams: StreamPair, own: CallContext): Promise<StdioConnection> {
  const sdk = await loadSdk()
  const stdio = await import('@modelcontextprotocol/server/stdio')
  const ended = Promise.withResolvers<void>()
  const messages = filterMessages(streams, MESSAGE_BYTES)
  const transport = new stdio.StdioServerTransport(messages, streams.output, { maxBufferSize: 2 * MESSAGE_BYTES })
  const handle = stdio.serveStdio(
    () => {
      const server = createProtocolServer(sdk, published, own)
      server.onclose = follow(server, sdk, published, own)
      return server
    },
    {
      transport,
      onerror: err => published.log.debug({ err }, 'the stdio client sent an invalid message'),
    }
  )
  const onEnd = () => ended.resolve()
  messages.once('end', onEnd).once('close', onEnd)
  own.signal.addEventListener('abort', () => void handle.close(), { once: true })
  return {
    ended: ended.promise,
    async close() {
      await handle.close()
      ended.resolve()
    },
  }
}

interface StreamPair {
  readonly input: Readable
  readonly output: Writable
}

/**
 * Passes valid messages on and answers invalid lines as over HTTP. The SDK ignores invalid lines, and stops reading after a line that is too long. The stream ends
 * with the input, after an endless line, and when the output closes.
 */
function filterMessages({ input, output }: StreamPair, most: number): Readable {
  const messages = new PassThrough()
  const reject = ({ body }: HttpAnswer) => void output.write(`${body as string}\n`)
  const end = () => void messages.end()
  readLines(input, most, {
    line(text) {
      const rejection = rejectionOf(text)
      if (rejection) reject(rejection)
      else if (messages.writable) messages.write(`${text}\n`)
    },
    tooLong: () => reject(overLong(most)),
    endless: end,
  })
  input.once('end', end).once('close', end).once('error', end)
  const drop = () => void messages.destroy()
  output.once('error', drop).once('close', drop)
  return messages
}

function rejectionOf(text: string): HttpAnswer | undefined {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return text.trim() === '' ? undefined : unreadable('the line is not valid JSON')
  }
  if (!isTree(message) || message.jsonrpc !== '2.0') return notRpc()
  const id = isId(message.id) ? message.id : null
  if (deeper(message, DEEPEST)) return tooDeep(DEEPEST, id)
  return isAnswer(message, id) || isRequest(message, id) ? undefined : notRpc(id)
}

const isAnswer = (message: RpcObject, id: MessageId) =>
  message.method === undefined && id !== null && ('result' in message || 'error' in message)

/** Whether a message is a request or a notification, which has no id. */
const isRequest = ({ method, params, ...message }: RpcObject, id: MessageId) =>
  typeof method === 'string' && (params === undefined || isTree(params)) && (id !== null || message.id === undefined)

type RpcObject = Readonly<Record<string, unknown>>
type MessageId = string | number | null

const isId = (id: unknown): id is string | number => typeof id === 'string' || Number.isSafeInteger(id)
