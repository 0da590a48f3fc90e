import { PassThrough, type Readable, type Writable } from 'node:stream'
import { isTree, type CallContext } from '@svc/core'
import { deeper, readLines } from '@svc/mcp-protocol'
import { DEEPEST } from './endpoint.ts'
import { notRpc, overLong, tooDeep, unreadable } from './faults.ts'
import type { HttpAnswer } from './message.ts'
import { follow } from './notices.ts'
import { createProtocolServer } from './protocol-server.ts'
import type { Published } from './published.ts'
import { loadSdk } from './sdk.ts'

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
  own: CallContext
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

/**
 * What of a client's lines is a message. The SDK passes over the others in silence, and reads no further after one that is too long: here each is answered as over
 * HTTP, and the next is read. The stream ends with the client's, where a line does not end, and where nobody
 * hears the answers any more.
 */
function sieve(lines: { readonly input: Readable; readonly output: Writable }, most: number): Readable {
  const messages = new PassThrough()
  const refuse = ({ body }: HttpAnswer) => void lines.output.write(`${body as string}\n`)
  const end = () => void messages.end()
  readLines(lines.input, most, {
    line(text) {
      const refusal = refusalOf(text)
      if (refusal) refuse(refusal)
      else if (messages.writable) messages.write(`${text}\n`)
    },
    tooLong: () => refuse(overLong(most)),
    endless: end,
  })
  lines.input.once('end', end).once('close', end).once('error', end)
  const drop = () => void messages.destroy()
  lines.output.once('error', drop).once('close', drop)
  return messages
}

function refusalOf(text: string): HttpAnswer | undefined {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return text.trim() === '' ? undefined : unreadable('the line is not valid JSON')
  }
  if (!isTree(message) || message.jsonrpc !== '2.0') return notRpc()
  const id = isId(message.id) ? message.id : null
  if (deeper(message, DEEPEST)) return tooDeep(DEEPEST, id)
  return isAnswer(message, id) || isQuestion(message, id) ? undefined : notRpc(id)
}

const isAnswer = (message: Tree, id: Id) =>
  message.method === undefined && id !== null && ('result' in message || 'error' in message)

/** A request, or a notification: that has no id at all. */
const isQuestion = ({ method, params, ...message }: Tree, id: Id) =>
  typeof method === 'string' && (params === undefined || isTree(params)) && (id !== null || message.id === undefined)

type Tree = Readonly<Record<string, unknown>>
type Id = string | number | null

const isId = (id: unknown): id is string | number => typeof id === 'string' || Number.isSafeInteger(id)
