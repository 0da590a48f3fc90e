import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { createLineWriter, readLines, readMessage } from '@svc/mcp-protocol'
import { type Child, drained, type Exit, startChild } from '@svc/worker-pool/processes'
import { cannotSend } from '../../errors.ts'
import type { McpConnection, ServerTransport } from '../connection.ts'
import type { Launch, StdioOptions } from '../client-types.ts'

/** The variables that a program needs to run, and that hold no secret. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL', 'TZ']
/** Time for a server to end by itself after its input is closed. */
const POLITE_MS = 500

/** Starts the program and connects to its standard input and output. Throws CHILD_NOT_STARTED, and the errors of `wrap`. */
export async function openStdio(
  options: StdioOptions,
  resultBytes: number,
  connection: McpConnection,
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

function transportOf(child: Child, launch: Launch, resultBytes: number, connection: McpConnection): ServerTransport {
  const reason = Promise.withResolvers<string>()
  const write = createLineWriter(child.stdin)
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
          const message = readMessage(text) as JSONRPCMessage | undefined
          if (message === undefined) connection.countUnexpected()
          else if (!connection.take(message)) transport.onmessage?.(message)
        },
        tooLong: (head, tail) => connection.tooLong(ID.exec(head)?.[1] ?? ID.exec(tail)?.[1]),
        endless: () => abort('it sends a message that does not end'),
      })
    },
    // not async: a promise for each message would cost as much as its write
    send(message) {
      const problem = write(message)
      return problem === undefined ? SENT : Promise.reject(cannotSend(problem))
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

/** The id of an answer that is too long to parse: near its start, or its end. */
const ID = /"id"\s*:\s*"([^"]{1,100})"/
