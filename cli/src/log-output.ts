import { write, writeSync } from 'node:fs'
import { codeOf, type LogOptions } from '@svc/core'
import { visible, visibleLines } from './command/text.ts'

// An `import` of node:util reads all its names, and so loads what they hide: here that would delay every start.
const { styleText } = process.getBuiltinModule('node:util')

/** Where a process writes its log. */
export interface LogOutput {
  readonly destination: { write(line: string): void }
  /** Writes what is still in memory; resolves when it is written, or when nobody reads it. */
  readonly end: () => Promise<void>
  /** The same at once, for the very end of the process. */
  readonly endNow: () => void
}

/** Log lines on a stream: JSON for programs, in memory for half a second at most; one readable line each on a terminal. What others say in it steers no terminal. */
export function openLog(stream: NodeJS.WriteStream & { readonly fd: number }, json: boolean): LogOutput {
  if (!stream.isTTY || json) return bufferedOutput(stream.fd)
  return { destination: { write: line => void stream.write(readable(line, stream)) }, end: async () => {}, endNow() {} }
}

const FLUSH_MS = 500
const ENOUGH = 65_536
/** What a reader that stops reading, or a full disk, may make this process hold; more is dropped, and told once it goes on. */
const MOST = 8 * 1024 * 1024
const RETRY_MS = 20
const END_TRIES = 50

/**
 * Collects lines and writes them in pieces, off the event loop: a destination of our own, which pino takes as its manual says (an object with `write`).
 * `pino.destination({ sync: false })` cannot be used: at the exit of the process it writes what is left until that succeeds (sonic-boom's `flushSync` repeats each
 * error), so a process whose reader has gone, or whose disk is full, never ends. With `sync: true` a slow reader holds up the event loop.
 */
function bufferedOutput(fd: number): LogOutput {
  let waiting = ''
  let writing: Buffer | undefined
  let isGone = false
  let dropped = 0
  const next = () => {
    if (writing !== undefined || waiting === '') return
    writing = Buffer.from(dropped === 0 ? waiting : waiting + droppedLine(dropped))
    waiting = ''
    dropped = 0
    step(writing)
  }
  const step = (bytes: Buffer) =>
    write(fd, bytes, (error, count) => {
      if (error) return canWait(error) ? void setTimeout(step, isBusy(error) ? RETRY_MS : FLUSH_MS, bytes).unref() : gone()
      if (count < bytes.length) return step((writing = bytes.subarray(count)))
      writing = undefined
      if (waiting.length >= ENOUGH) next()
    })
  const gone = () => {
    isGone = true
    waiting = ''
    writing = undefined
  }
  const timer = setInterval(next, FLUSH_MS).unref()
  return {
    destination: {
      write(line) {
        if (isGone) return
        if (waiting.length > MOST) return void dropped++
        waiting += harmless(line)
        if (waiting.length >= ENOUGH) next()
      },
    },
    async end() {
      clearInterval(timer)
      for (let tries = 0; tries < END_TRIES && (writing !== undefined || waiting !== ''); tries++) {
        next()
        await new Promise(resolve => setTimeout(resolve, RETRY_MS / 4))
      }
    },
    endNow() {
      const rest = Buffer.from(waiting)
      waiting = ''
      if (!isGone) writeNow(fd, rest)
    },
  }
}

/** What JSON may hold as it is, and a terminal that shows the log obeys or turns round: controls above ASCII, line separators, direction marks. */
const STEERING = /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** A line of JSON with these written as JSON escapes them. */
const harmless = (line: string) => line.replace(STEERING, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const droppedLine = (lines: number) =>
  `${JSON.stringify({ level: 40, time: new Date().toISOString(), msg: `${lines} lines of this log are missing here: nobody took them`, dropped: lines })}\n`

/** A disk has room again one day; a reader that has left does not come back. */
const FULL = new Set<string | undefined>(['ENOSPC', 'EDQUOT', 'EIO'])
const canWait = (error: unknown) => isBusy(error) || FULL.has(codeOf(error))
const isBusy = (error: unknown) => codeOf(error) === 'EAGAIN' || codeOf(error) === 'EBUSY'

/** Gives up after a while: a log line is no reason to keep a process. */
function writeNow(fd: number, bytes: Buffer): void {
  for (let at = 0, tries = 0; at < bytes.length && tries < END_TRIES; ) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      if (!isBusy(error)) return
      tries++
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
    }
  }
}

const LEVELS: Readonly<Record<number, { word: string; colour: 'gray' | 'green' | 'yellow' | 'red' }>> = {
  20: { word: 'debug', colour: 'gray' },
  30: { word: 'info ', colour: 'green' },
  40: { word: 'warn ', colour: 'yellow' },
  50: { word: 'error', colour: 'red' },
}

/** One JSON log line as a person reads it: time, level, plugin, sentence, facts. */
export function readable(line: string, stream: NodeJS.WriteStream): string {
  const {
    time,
    level,
    plugin,
    msg = '',
    err,
    ...facts
  } = JSON.parse(line) as Record<string, unknown> & { err?: { stack?: string } }
  const paint = (colour: 'gray' | 'green' | 'yellow' | 'red', text: string) => styleText(colour, text, { stream })
  const { word, colour } = LEVELS[Number(level)] ?? { word: String(level), colour: 'gray' as const }
  const head = [
    paint('gray', String(time).slice(11, 23)),
    paint(colour, word),
    ...(typeof plugin === 'string' ? [paint('gray', shortName(plugin))] : []),
  ]
  const rest = Object.entries(facts).map(([key, value]) =>
    visible(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
  )
  const [first = '', ...others] = String(msg).split('\n').map(visible)
  const stack = err?.stack ? visibleLines(err.stack).split('\n') : []
  const begin = [...head, first, paint('gray', rest.join(' '))].join(' ').trimEnd()
  // no line of a text of others looks like one of this log
  return `${[begin, ...[...others, ...stack].map(one => `  ${one}`)].join('\n')}\n`
}

const shortName = (plugin: string) => visible(plugin.replace(/^@svc\/plugin-/, ''))

/** The log of a host inside a command, of which a person is told what isolated plugins were refused: they themselves see a variable that is not set, a host that cannot be reached. */
export const REFUSALS: LogOptions = { level: 'warn', destination: { write: line => void process.stderr.write(refusalIn(line)) } }

function refusalIn(line: string): string {
  const { plugin, of, msg, hint } = JSON.parse(line) as { readonly [fact: string]: unknown }
  if (plugin !== '@svc/plugin-isolation' || of === undefined) return ''
  return [`warning: ${String(msg)}`, ...(typeof hint === 'string' ? [`  ${hint}`] : [])]
    .map(text => `${visible(text)}\n`)
    .join('')
}
