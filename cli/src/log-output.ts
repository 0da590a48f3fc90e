import { write, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, type LogOptions } from '@svc/core'
import { visible, visibleLines } from './command/text.ts'

// An `import` of node:util loads all its lazy exports, which would delay every start.
const { styleText } = process.getBuiltinModule('node:util')

/** The log of a process. */
export interface LogOutput {
  readonly destination: { write(line: string): void }
  /** Writes the buffered lines. Resolves when they are written, or when the reader has gone. */
  readonly end: () => Promise<void>
  /** The same, synchronously, for the exit of the process. */
  readonly endNow: () => void
}

/**
 * Writes log lines to a stream: buffered JSON, or readable lines on a terminal. Control characters in the lines are escaped.
 */
export function openLog(stream: NodeJS.WriteStream & { readonly fd: number }, json: boolean): LogOutput {
  if (!stream.isTTY || json) return bufferedOutput(stream.fd)
  return { destination: { write: line => void stream.write(readable(line, stream)) }, end: async () => {}, endNow() {} }
}

const FLUSH_MS = 500
const ENOUGH = 65_536
/**
 * Limit of the buffer if the reader stops or the disk is full. More lines are dropped, and their number is logged afterwards.
 */
const MOST = 8 * 1024 * 1024
const RETRY_MS = 20
const END_TRIES = 50

/**
 * Collects lines and writes them in pieces, off the event loop. pino takes it as a destination (an object with `write`).
 * `pino.destination({ sync: false })` cannot be used: at exit, sonic-boom's `flushSync` repeats failed writes for ever, so the
 * process never ends when its reader has gone or the disk is full. With `sync: true`, a slow reader blocks the event loop.
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
        await sleep(RETRY_MS / 4)
      }
    },
    endNow() {
      const rest = Buffer.from(waiting)
      waiting = ''
      if (!isGone) writeNow(fd, rest)
    },
  }
}

/** Characters that JSON allows and a terminal interprets: controls above ASCII, line separators, direction marks. */
const STEERING = /[\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** A line of JSON with these characters escaped. */
const harmless = (line: string) => line.replace(STEERING, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

const droppedLine = (lines: number) =>
  `${JSON.stringify({ level: 40, time: new Date().toISOString(), msg: `${lines} lines of this log are missing here, because the reader was too slow`, dropped: lines })}\n`

/** A full disk can have room again; a reader that has left does not come back. */
const FULL = new Set<string | undefined>(['ENOSPC', 'EDQUOT', 'EIO'])
const canWait = (error: unknown) => isBusy(error) || FULL.has(codeOf(error))
const isBusy = (error: unknown) => codeOf(error) === 'EAGAIN' || codeOf(error) === 'EBUSY'

/** Gives up after a while: a log line must not keep the process alive. */
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

/** A JSON log line for a person: time, level, plugin, message, facts. */
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
  // no line of a foreign text can look like a line of this log
  return `${[begin, ...[...others, ...stack].map(other => `  ${other}`)].join('\n')}\n`
}

const shortName = (plugin: string) => visible(plugin.replace(/^@svc\/plugin-/, ''))

/**
 * The log of a host inside a command. It shows only refused accesses of isolated plugins, which themselves see a missing
 * variable or an unreachable host.
 */
export const REFUSALS: LogOptions = { level: 'warn', destination: { write: line => void process.stderr.write(refusalIn(line)) } }

function refusalIn(line: string): string {
  const { plugin, of, msg, hint } = JSON.parse(line) as { readonly [fact: string]: unknown }
  if (plugin !== '@svc/plugin-isolation' || of === undefined) return ''
  return [`warning: ${String(msg)}`, ...(typeof hint === 'string' ? [`  ${hint}`] : [])]
    .map(text => `${visible(text)}\n`)
    .join('')
}
