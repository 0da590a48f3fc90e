import { setTimeout as sleep } from 'node:timers/promises'
import { abortOnInterrupt } from '@svc/cli/program'
import { stripVTControlCharacters } from 'node:util'

/** Shows pictures on a terminal, and restores its former content. */
export interface LiveScreen extends Disposable {
  draw(text: string): void
}

const OTHER_SCREEN = '\x1b[?1049h\x1b[?25l'
const FORMER_SCREEN = '\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const END_OF_LINE = '\x1b[K'
const REST_OF_SCREEN = '\x1b[J'
const PLAIN = '\x1b[0m'
/** For a terminal that does not report its size. */
const ROWS = 24
const COLUMNS = 80

/** Uses the alternate screen. Each picture overwrites the last one without clearing, so nothing flickers. */
export function openLiveScreen(stream: NodeJS.WriteStream): LiveScreen {
  let last = ''
  const paint = () => {
    const lines = last.split('\n').slice(0, (stream.rows || ROWS) - 1)
    const fitting = lines.map(line => `${cut(line, stream.columns || COLUMNS)}${END_OF_LINE}`)
    stream.write(`${HOME}${fitting.join('\n')}\n${REST_OF_SCREEN}`)
  }
  const leave = () => void stream.write(FORMER_SCREEN)
  stream.write(OTHER_SCREEN)
  stream.on('resize', paint)
  process.once('exit', leave)
  return {
    draw(text) {
      last = text
      paint()
    },
    [Symbol.dispose]() {
      stream.off('resize', paint)
      process.off('exit', leave)
      leave()
    },
  }
}

/** Cuts a line that would wrap. Drops its colours, which are not worth counting. */
function cut(line: string, columns: number): string {
  const bare = stripVTControlCharacters(line)
  return bare.length <= columns ? line : `${bare.slice(0, columns)}${PLAIN}`
}

/** One request: what the server answered, or the error. */
export type Sample<T> =
  | { readonly at: number; readonly found: T; readonly error?: undefined }
  | { readonly at: number; readonly found?: undefined; readonly error: unknown }

/** Repeats a request until the signal aborts. Throws if the first one fails. */
export async function lookAgain<T>(
  read: () => Promise<T>,
  intervalS: number,
  signal: AbortSignal,
  show: (now: Sample<T>, before: Sample<T> | undefined) => void
): Promise<void> {
  let before: Sample<T> = { at: performance.now(), found: await read() }
  show(before, undefined)
  while (await passed(intervalS * 1000, signal)) {
    const now = await look(read)
    show(now, before)
    before = now
  }
}

/** False if the signal aborted. */
const passed = (ms: number, signal: AbortSignal) => sleep(ms, true, { signal }).catch(() => false)

async function look<T>(read: () => Promise<T>): Promise<Sample<T>> {
  try {
    const found = await read()
    return { at: performance.now(), found }
  } catch (error) {
    return { at: performance.now(), error }
  }
}

/** Runs until Ctrl-C, SIGTERM, or the end of the reader. */
export async function untilEnded(run: (signal: AbortSignal) => Promise<void>): Promise<number> {
  using interrupt = abortOnInterrupt()
  const ending = new AbortController()
  const end = () => ending.abort()
  process.once('SIGTERM', end)
  process.stdout.on('error', end)
  try {
    await run(AbortSignal.any([interrupt.signal, ending.signal]))
    return 0
  } finally {
    process.off('SIGTERM', end)
  }
}
