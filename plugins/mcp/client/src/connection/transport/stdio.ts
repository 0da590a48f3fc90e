import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { readLines } from '@svc/mcp-protocol'
import { type Child, drained, type Exit, startChild } from '@svc/worker-pool/processes'
import { cannotSend } from '../../errors.ts'
import type { Connection, ServerTransport } from '../connection.ts'
import type { Launch, StdioOptions } from '../options.ts'

/** The variables that a program needs to run, and that hold no secret. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL', 'TZ']
/** Time for a server to end by itself after its input is closed. */
const POLITE_MS = 500

/** Starts the program and connects to its standard input and output. Throws CHILD_NOT_STARTED, and the errors of `wrap`. */
export async function openStdio(
  options: StdioOptions,
  resultBytes: number,
  connection: Connection,
  signal: AbortSignal
): Promise<ServerTransport> {
  const { command, args = [], env = {}, cwd } = options
  const kept = INHERITED.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]))
  const plain = { file: command, args, env: { ...Object.fromEntries(kept), ...env }, ...(cwd !== undefined && { cwd }) }
  const launch: Launch = options.wrap === undefined ? plain : await options.wrap(plain, { signal })
  try {
    return transportOf(await startChild({ ...launch, signal }), launch, resultBytes, connection)
  } catch (error) {
    await launch.release?.()
    throw error
  }
}

function transportOf(child: Child, launch: Launch, resultBytes: number, connection: Connection): ServerTransport {
  const reason = Promise.withResolvers<string>()
  const write = createWriter(child)
  const abort = (why: string) => {
    reason.resolve(why)
    child.stdout.destroy()
    child.kill()
  }
  const end = async () => {
    reason.resolve('it was closed')
    await child.end({ politeMs: POLITE_MS })
    await released
  }
  const released = child.exited.then(async exit => {
    // a server can answer and end
    if (child.stdout.readableFlowing && !child.stdout.destroyed) await drained(child.stdout)
    try {
      reason.resolve((await launch.release?.()) ?? describeExit(exit))
    } finally {
      reason.resolve(describeExit(exit))
      transport.onclose?.()
    }
  })
  const transport: ServerTransport & { readonly pid: number } = {
    // the SDK takes a transport with `stderr` and `pid` for stdio
    pid: child.pid,
    authMs: () => 0,
    stderr: () => child.errorTail(),
    async start() {
      readLines(child.stdout, resultBytes, {
        line(text) {
          const message = parsed(text)
          if (message === undefined) connection.countUnexpected()
          else if (!connection.take(message)) transport.onmessage?.(message)
        },
        tooLong: (head, tail) => connection.tooLong(ID.exec(head)?.[1] ?? ID.exec(tail)?.[1]),
        endless: () => abort('it sends a message that does not end'),
      })
    },
    // not async: a promise for each message would cost as much as its write
    send(message) {
      try {
        write(message)
        return SENT
      } catch (error) {
        return Promise.reject(error)
      }
    },
    sender: () => undefined,
    ended: reason.promise,
    close: end,
    end,
    abort,
    authorize: async () => false,
  }
  return transport
}

const describeExit = ({ code, signal }: Exit) =>
  signal === null ? `its process ended with code ${code}` : `its process was ended by ${signal}`

const SENT = Promise.resolve()

/** Some servers print banners and logs to the standard output: ignores lines that are not messages. */
function parsed(text: string): JSONRPCMessage | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const message = JSON.parse(text) as { jsonrpc?: unknown }
    return message.jsonrpc === '2.0' ? (message as JSONRPCMessage) : undefined
  } catch {
    return undefined
  }
}

/** The id of an answer that is too long to parse: near its start, or its end. */
const ID = /"id"\s*:\s*"([^"]{1,100})"/

/** Limit on the messages in memory that a server has not read. */
const MAX_UNREAD = 33_554_432

/** Collects the messages of one turn of the event loop into one write: a write costs more than a message. */
function createWriter({ stdin }: Child): (message: object) => void {
  let waiting = ''
  const flush = () => {
    if (stdin.writable) stdin.write(waiting)
    waiting = ''
  }
  return message => {
    if (!stdin.writable) throw cannotSend('its process has ended')
    if (stdin.writableLength > MAX_UNREAD) throw cannotSend('it does not read its input')
    if (waiting === '') setImmediate(flush)
    waiting += `${JSON.stringify(message)}\n`
  }
}
