import { once } from 'node:events'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { readLines } from '@svc/mcp-protocol'
import { type Child, type Exit, startChild } from '@svc/worker-pool/processes'
import { cannotSend } from '../../errors.ts'
import { type Link, type LinkEvents, tapped } from '../json-rpc.ts'
import type { Launch, StdioOptions } from '../options.ts'

/** The variables that a program needs to run, and that hold no secret. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL', 'TZ']
/** Time for a server to end by itself after its input is closed. */
const POLITE_MS = 500

/** Starts the program and connects to its standard input and output. Throws CHILD_NOT_STARTED, and the errors of `wrap`. */
export async function openStdio(
  options: StdioOptions,
  resultBytes: number,
  events: LinkEvents,
  signal: AbortSignal
): Promise<Link> {
  const plain = launchOf(options)
  const launch = options.wrap === undefined ? plain : await options.wrap(plain, { signal })
  try {
    const child = await startChild({ ...launch, signal })
    return linkOf(child, launch, resultBytes, events)
  } catch (error) {
    await launch.release?.()
    throw error
  }
}

function launchOf({ command, args = [], env = {}, cwd }: StdioOptions): Launch {
  const kept = INHERITED.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]))
  return { file: command, args, env: { ...Object.fromEntries(kept), ...env }, ...(cwd !== undefined && { cwd }) }
}

function linkOf(child: Child, launch: Launch, resultBytes: number, events: LinkEvents): Link {
  const reason = Promise.withResolvers<string>()
  const giveUp = (why: string) => {
    reason.resolve(why)
    child.stdout.destroy()
    child.kill()
  }
  const send = createSender(child)
  const close = async () => {
    reason.resolve('it was closed')
    await child.end({ politeMs: POLITE_MS })
    await released
  }
  const inner: Transport = {
    start: async () => read(child, resultBytes, inner, events, giveUp),
    send: async message => send(message),
    close,
  }
  const released = child.exited.then(async exit => {
    await readRest(child)
    try {
      reason.resolve((await launch.release?.()) ?? ending(exit))
    } finally {
      reason.resolve(ending(exit))
      inner.onclose?.()
    }
  })
  return {
    // these two properties tell the SDK that this is not HTTP
    transport: tapped(inner, events.take, { stderr: null, pid: child.pid }),
    perRequest: false,
    send(message, _sender, failed) {
      try {
        send(message)
      } catch (error) {
        failed(error)
      }
    },
    sender: () => undefined,
    ended: reason.promise,
    close,
    giveUp,
    authorize: async () => false,
    stderr: () => child.errorTail(),
  }
}

/** Limit for reading the rest of the output of an ended process. */
const REST_MS = 1_000

/** A server can answer and end: reads its output to the end. */
async function readRest({ stdout }: Child): Promise<void> {
  if (stdout.closed || stdout.destroyed || !stdout.readableFlowing) return
  const timer = setTimeout(() => stdout.destroy(), REST_MS)
  await once(stdout, 'close')
  clearTimeout(timer)
}

const ending = ({ code, signal }: Exit) =>
  signal === null ? `its process ended with code ${code}` : `its process was ended by ${signal}`

function read(child: Child, most: number, inner: Transport, events: LinkEvents, giveUp: (why: string) => void): void {
  readLines(child.stdout, most, {
    line(text) {
      const message = parsed(text)
      if (message === undefined) events.countUnexpected()
      else inner.onmessage?.(message)
    },
    tooLong: (begin, end) => events.tooLong(answered(begin, end)),
    endless: () => giveUp('it sends a message that does not end'),
  })
}

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

const ID = /"id"\s*:\s*"([^"]{1,100})"/

/** The id of an answer that is too long to parse: near its start, or its end. */
function answered(begin: string, end: string): string | undefined {
  return ID.exec(begin)?.[1] ?? ID.exec(end)?.[1]
}

/** Limit on the messages in memory that a server has not read. */
const MAX_UNREAD = 33_554_432

/** Collects the messages of one turn of the event loop into one write: a write costs more than a message. */
function createSender({ stdin }: Child): (message: object) => void {
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
