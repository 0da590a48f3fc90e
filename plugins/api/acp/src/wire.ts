import type { Readable, Writable } from 'node:stream'
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { isTree } from '@svc/core'
import { deeper, readLines, RPC } from '@svc/mcp-protocol'

/** The two streams of an editor. */
export interface EditorStreams {
  readonly input: Readable
  readonly output: Writable
}

/** Maximum size of a message, in bytes. */
const MESSAGE_BYTES = 10 * 1_048_576
/** Maximum levels of a message. */
export const DEEPEST = 100
/** Messages that can wait, and messages that svc handles while the editor does not read the answers. */
const WAITING = 1_000

/**
 * Messages over two byte streams, one per line. The stream of the SDK ends the connection after a line that is too long, and
 * answers an invalid line with its whole content; this one answers with an error, and reads on. It ends with the input, and when
 * the output closes.
 */
export function messageStream(streams: EditorStreams): Stream {
  const lines = new LineStream(streams)
  return {
    readable: new ReadableStream<AnyMessage>({ start: controller => lines.start(controller), cancel: () => lines.close() }),
    writable: new WritableStream<AnyMessage>({ write: message => lines.write(message) }),
  }
}

class LineStream {
  readonly #input: Readable
  readonly #output: Writable
  readonly #waiting: ReadLine[] = []
  #controller: ReadableStreamDefaultController<AnyMessage> | undefined
  #unanswered = 0
  #isWriting = false
  #isScheduled = false
  #hasEnded = false

  constructor({ input, output }: EditorStreams) {
    this.#input = input
    this.#output = output
  }

  start(controller: ReadableStreamDefaultController<AnyMessage>): void {
    this.#controller = controller
    const end = () => {
      this.#hasEnded = true
      this.#schedule()
    }
    readLines(this.#input, MESSAGE_BYTES, {
      line: line => line.trim() !== '' && this.#take(readLine(line)),
      tooLong: () => this.#take(refusal(RPC.invalidRequest, `the line has more than ${MESSAGE_BYTES} bytes`)),
      endless: end,
    })
    this.#input.once('end', end).once('close', end).once('error', end)
    const close = () => {
      this.#controller?.close()
      this.close()
    }
    this.#output.once('close', close).on('error', close)
  }

  /** Reads no more. */
  close(): void {
    this.#controller = undefined
    this.#waiting.length = 0
    this.#input.pause()
  }

  write(message: object): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#isWriting = true
    this.#output.write(`${JSON.stringify(message)}\n`, error => {
      this.#isWriting = false
      this.#schedule()
      return error ? reject(error) : resolve()
    })
    return promise
  }

  #take(line: ReadLine): void {
    if (this.#controller) this.#waiting.push(line)
    if (this.#waiting.length > WAITING) this.#input.pause()
    this.#schedule()
  }

  /**
   * Each message gets a turn of the event loop, in which its handler starts. Otherwise the SDK could start the handler of a
   * cancellation before that of the prompt.
   */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#deliver()
    })
  }

  #deliver(): void {
    if (!this.#controller) return
    if (!this.#isWriting) this.#unanswered = 0
    // the end of the write continues
    else if (++this.#unanswered > WAITING) return
    const next = this.#waiting.shift()
    if (next) {
      if ('message' in next) this.#controller.enqueue(next.message)
      else this.write(next.refusal).catch(() => {})
      this.#schedule()
    } else if (this.#hasEnded) {
      this.#controller.close()
      this.close()
    } else if (this.#input.isPaused()) this.#input.resume()
  }
}

type MessageId = string | number | null
type ReadLine = { readonly message: AnyMessage } | { readonly refusal: object }

const refusal = (code: number, reason: string, id: MessageId = null): ReadLine => ({
  refusal: { jsonrpc: '2.0', id, error: { code, message: `${TITLES[code]}: ${reason}` } },
})
const TITLES: Readonly<Record<number, string>> = { [RPC.parse]: 'Parse error', [RPC.invalidRequest]: 'Invalid request' }

function readLine(line: string): ReadLine {
  let message: unknown
  try {
    message = JSON.parse(line)
  } catch {
    return refusal(RPC.parse, 'the line is not valid JSON')
  }
  if (Array.isArray(message)) return refusal(RPC.invalidRequest, 'batches are not supported')
  if (!isTree(message)) return refusal(RPC.invalidRequest, 'the line is not a JSON object')
  const id = isId(message.id) ? message.id : null
  if (message.jsonrpc !== '2.0') return refusal(RPC.invalidRequest, '"jsonrpc" must be "2.0"', id)
  if (deeper(message, DEEPEST)) return refusal(RPC.invalidRequest, `nested deeper than ${DEEPEST} levels`, id)
  return isMessage(message) ? { message } : refusal(RPC.invalidRequest, 'not a message of JSON-RPC 2.0', id)
}

const isId = (id: unknown): id is string | number => typeof id === 'string' || Number.isSafeInteger(id)

/** A request, a notification or a response. */
function isMessage(message: unknown): message is AnyMessage {
  if (!isTree(message)) return false
  const { method, id, ...rest } = message
  if (method !== undefined) return typeof method === 'string' && (id === undefined || id === null || isId(id))
  return (id === null || isId(id)) && ('result' in rest || 'error' in rest)
}
