import { createInterface } from 'node:readline/promises'
import { stripVTControlCharacters, styleText } from 'node:util'

type Tone = 'green' | 'red' | 'yellow' | 'dim'

/** A line that stays. */
export interface Line {
  readonly text: string
  readonly tone?: Tone
}

/** Where a run is shown: lines that stay, and below them what goes on now, where there is a terminal. */
export interface Screen extends Disposable {
  readonly hasPerson: boolean
  line(line: Line): void
  /** What is drawn below the lines, again and again. */
  live(draw: () => readonly string[]): void
  /** Asks the person; undefined where nobody answers, or the signal aborts. What is said meanwhile is shown afterwards. */
  question(text: string, signal: AbortSignal): Promise<string | undefined>
}

/** Lines on the standard error, one after the other. */
export const plainScreen = (note: (line: string) => void): Screen => ({
  hasPerson: false,
  line: ({ text }) => note(text),
  live: () => {},
  question: async () => undefined,
  [Symbol.dispose]: () => {},
})

const DRAW_MS = 200
const COLUMNS = 80
const ROWS = 24

/** A terminal with a person at it, or undefined. */
export function personalScreen(): Screen | undefined {
  const { stdin, stderr } = process
  return stdin.isTTY && stderr.isTTY ? terminalScreen(stderr) : undefined
}

function terminalScreen(stream: NodeJS.WriteStream): Screen {
  let draw: () => readonly string[] = () => []
  let [drawn, asking] = [0, false]
  const kept: Line[] = []
  const clear = () => {
    if (drawn > 0) stream.write(`\x1b[${drawn}A\x1b[J`)
    drawn = 0
  }
  const paint = () => {
    if (asking) return
    const lines = draw().slice(0, (stream.rows || ROWS) - 1)
    clear()
    if (lines.length > 0) stream.write(`${lines.map(line => cut(line, stream)).join('\n')}\n`)
    drawn = lines.length
  }
  const write = ({ text, tone }: Line) => void stream.write(`${tone ? styleText(tone, text, { stream }) : text}\n`)
  const timer = setInterval(paint, DRAW_MS).unref()
  return {
    hasPerson: true,
    line(line) {
      if (asking) return void kept.push(line)
      clear()
      write(line)
      paint()
    },
    live: how => void (draw = how),
    async question(text, signal) {
      clear()
      asking = true
      const answer = await asked(text, stream, signal)
      asking = false
      for (const line of kept.splice(0)) write(line)
      return answer
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      clear()
    },
  }
}

async function asked(text: string, output: NodeJS.WriteStream, signal: AbortSignal): Promise<string | undefined> {
  const editor = createInterface({ input: process.stdin, output, historySize: 0 })
  const closed = new AbortController()
  editor.once('close', () => closed.abort())
  // while it is open the terminal sends no signal: it stands in
  editor.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    return await editor.question(text, { signal: AbortSignal.any([signal, closed.signal]) })
  } catch {
    output.write('\n')
    return undefined
  } finally {
    editor.close()
  }
}

const cut = (line: string, { columns }: NodeJS.WriteStream) => stripVTControlCharacters(line).slice(0, (columns || COLUMNS) - 1)
