import type { Readable } from 'node:stream'
import { LONGEST_LINE } from './short-facts.ts'

const LINES = 100
const BYTES = 1_048_576
const WINDOW_MS = 1000

/** What a plugin may write in a second: more lines are left out and counted, more output waits. */
export interface LineBudget extends Disposable {
  /** Whether one more line may be written. */
  takes(): boolean
  /** Reads lines of what a process prints. */
  read(stream: Readable, tell: (line: string) => void): void
}

export function createLineBudget(tellLost: (lines: number) => void): LineBudget {
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
    rest = all.pop()!.slice(0, LONGEST_LINE)
    for (const line of all) if (line !== '') tell(line.slice(0, LONGEST_LINE))
  }
}
