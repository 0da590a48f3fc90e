import { once } from 'node:events'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { type Child, type Exit, startChild } from '@svc/child'
import { readLines } from '@svc/mcp'
import { deaf } from '../../errors.ts'
import type { Launch, StdioOptions } from '../options.ts'
import { type Link, type LinkEvents, tapped } from './link.ts'

/** What a program of this machine needs to run at all, and what holds no secret. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL', 'TZ']
/** Milliseconds that a server has to end by itself once its input is closed. */
const POLITE_MS = 500

/** Starts the program and speaks with it over its standard input and output. Throws CHILD_NOT_STARTED, and what `wrap` throws. */
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
  const say = createSender(child)
  const close = async () => {
    reason.resolve('it was closed')
    await child.end({ politeMs: POLITE_MS })
    await released
  }
  const inner: Transport = {
    start: async () => read(child, resultBytes, inner, events, giveUp),
    send: async message => say(message),
    close,
  }
  const released = child.exited.then(async exit => {
    await lastWords(child)
    try {
      reason.resolve((await launch.release?.()) ?? ending(exit))
    } finally {
      reason.resolve(ending(exit))
      inner.onclose?.()
    }
  })
  return {
    // by these two the SDK knows that it is no HTTP
    transport: tapped(inner, events.take, { stderr: null, pid: child.pid }),
    perRequest: false,
    send(message, _sender, failed) {
      try {
        say(message)
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

/** Milliseconds for what a process wrote before it ended. */
const LAST_WORDS_MS = 1_000

/** A server may answer and end: what it wrote is read first. */
async function lastWords({ stdout }: Child): Promise<void> {
  if (stdout.closed || stdout.destroyed || !stdout.readableFlowing) return
  const timer = setTimeout(() => stdout.destroy(), LAST_WORDS_MS)
  await once(stdout, 'close')
  clearTimeout(timer)
}

const ending = ({ code, signal }: Exit) =>
  signal === null ? `its process ended with code ${code}` : `its process was ended by ${signal}`

function read(child: Child, most: number, inner: Transport, events: LinkEvents, giveUp: (why: string) => void): void {
  readLines(child.stdout, most, {
    line(text) {
      const message = parsed(text)
      if (message === undefined) events.noise()
      else inner.onmessage?.(message)
    },
    tooLong: (begin, end) => events.tooLong(answered(begin, end)),
    endless: () => giveUp('it sends a message without end'),
  })
}

/** Servers print banners and logs where they should not: what is no message is left out. */
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

/** The id of an answer that nobody has read: it stands first, or last. */
function answered(begin: string, end: string): string | undefined {
  return ID.exec(begin)?.[1] ?? ID.exec(end)?.[1]
}

/** A server that does not read what it is told must not fill our memory. */
const MOST_UNREAD = 33_554_432

/** Writes what is said in one turn of the loop at once: a write costs more than a message. */
function createSender({ stdin }: Child): (message: object) => void {
  let waiting = ''
  const flush = () => {
    if (stdin.writable) stdin.write(waiting)
    waiting = ''
  }
  return message => {
    if (!stdin.writable) throw deaf('its process has ended')
    if (stdin.writableLength > MOST_UNREAD) throw deaf('it does not read what it is sent')
    if (waiting === '') setImmediate(flush)
    waiting += `${JSON.stringify(message)}\n`
  }
}
