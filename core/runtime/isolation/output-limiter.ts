import type { Readable } from 'node:stream'
import { isWithinSize } from '@svc/core/internal'

const LINES = 100
const BYTES = 1_048_576
const WINDOW_MS = 1000

/** What a plugin may write in a second: more lines are left out and counted, more output waits. */
export interface OutputLimiter extends Disposable {
  /** Whether one more line may be written. */
  takes(): boolean
  /** Reads lines of what a process prints. */
  read(stream: Readable, tell: (line: string) => void): void
}

export function createOutputLimiter(tellLost: (lines: number) => void): OutputLimiter {
  const held = new Set<Readable>()
  let [lines, bytes, lost] = [0, 0, 0]
  let timer: NodeJS.Timeout | undefined
  const renew = () => {
    const left = lost
    timer = undefined
    lines = bytes = lost = 0
    for (const stream of held) stream.resume()
    held.clear()
    if (left > 0) tellLost(left)
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
    read(stream, tell) {
      const split = lineSplitter(line => takes() && tell(line))
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

function lineSplitter(tell: (line: string) => void): (chunk: string) => void {
  let rest = ''
  return chunk => {
    const all = (rest + chunk).split('\n')
    rest = all.pop()!.slice(0, MAX_LINE_LENGTH)
    for (const line of all) if (line !== '') tell(line.slice(0, MAX_LINE_LENGTH))
  }
}

/** Of a line of the log, and of the facts of one. */
export const MAX_LINE_LENGTH = 8192
const KEYS = 20
const LONGEST_TEXT = 200

/** What the log itself says of a line: who wrote it, when and how grave it is, no plugin says. */
const OURS = ['level', 'time', 'plugin', 'instance', 'msg', 'pid', 'hostname']

/** The facts of a line of a plugin's log: cut where they are long, and apart where they would take the place of what the log says itself. */
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
