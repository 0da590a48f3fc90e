import type { Readable } from 'node:stream'
import { redactText } from '@svc/core'
import { isWithinSize } from '@svc/core/internal'

const LINES = 100
const BYTES = 1_048_576
const WINDOW_MS = 1000

/** Limits the output of a plugin per second: further lines are dropped and counted, further bytes wait. */
export interface OutputLimiter extends Disposable {
  /** Whether another line can be written. */
  takes(): boolean
  /** Reads the output of a process by line. */
  read(stream: Readable, onLine: (line: string) => void): void
}

export function createOutputLimiter(onDropped: (lines: number) => void): OutputLimiter {
  const held = new Set<Readable>()
  let [lines, bytes, lost] = [0, 0, 0]
  let timer: NodeJS.Timeout | undefined
  const renew = () => {
    const left = lost
    timer = undefined
    lines = bytes = lost = 0
    for (const stream of held) stream.resume()
    held.clear()
    if (left > 0) onDropped(left)
  }
  const begin = () => (timer ??= setTimeout(renew, WINDOW_MS).unref())
  const takes = () => {
    begin()
    if (++lines <= LINES) return true
    lost++
    return false
  }
  return {
    takes,
    read(stream, onLine) {
      const split = lineSplitter(line => takes() && onLine(line))
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        begin()
        bytes += chunk.length
        split(chunk)
        if (bytes > BYTES) held.add(stream.pause())
      })
      stream.on('end', () => split('\n'))
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      renew()
    },
  }
}

function lineSplitter(onLine: (line: string) => void): (chunk: string) => void {
  let rest = ''
  return chunk => {
    const all = (rest + chunk).split('\n')
    rest = all.pop()!.slice(0, MAX_LINE_LENGTH)
    for (const line of all) if (line !== '') onLine(redactText(line).slice(0, MAX_LINE_LENGTH))
  }
}

/** Maximum length of a log line and of its fields. */
export const MAX_LINE_LENGTH = 8192
const KEYS = 20
const LONGEST_TEXT = 200

/** Fields that only the log itself sets: source, time and level of a line. */
const OURS = ['level', 'time', 'plugin', 'instance', 'msg', 'pid', 'hostname']

/** Truncates the fields of a log line of a plugin, and nests those that would replace fields of the log itself. */
export function truncateFacts(facts: unknown): object {
  if (typeof facts !== 'object' || facts === null) return {}
  const short = isWithinSize(facts, MAX_LINE_LENGTH) ? facts : cut(facts)
  return OURS.some(key => Object.hasOwn(short, key)) ? { said: short } : short
}

function cut(facts: object): object {
  const short: Record<string, unknown> = { cut: true }
  let keys = 0
  for (const key in facts) {
    if (++keys > KEYS) break
    const value: unknown = Reflect.get(facts, key)
    if (key.length > LONGEST_TEXT || typeof value === 'object') continue
    short[key] = typeof value === 'string' ? value.slice(0, LONGEST_TEXT) : value
  }
  return short
}
