import { createInterface } from 'node:readline/promises'
import { stripVTControlCharacters, styleText } from 'node:util'
import type { Json, PublicError, RunEvent } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { counted, shownMs } from './arguments.ts'

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

interface Going {
  readonly type: string
  readonly since: number
  said: string
}

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 200
const MOST = 12

/** A run as it goes, event by event. */
export class View {
  readonly #going = new Map<string, Going>()
  #steps = 0
  #tokens = 0

  /** What stays on the screen of an event. */
  take(event: RunEvent): Line | undefined {
    const { type, step = '', data, at } = event
    const going = this.#going.get(step)
    if (type === 'node_completed') return this.#ended(step, at, spentIn(data.spent))
    if (type === 'node_started') this.#going.set(step, { type: textOf(data.node_type), since: going?.since ?? at, said: '' })
    else if (going) going.said = saidIn(event)
    if (type === 'node_failed' || type === 'node_cancelled') this.#going.delete(step)
    return LINES[type]?.(event)
  }

  /** What goes on now, a line each. */
  live(now: number): readonly string[] {
    const all = [...this.#going]
    const frame = FRAMES[Math.floor(now / FRAME_MS) % FRAMES.length]!
    const lines = all
      .slice(-MOST)
      .map(([step, { type, since, said }]) => `${frame} ${step}  ${type}  ${shownMs(now - since)}  ${said}`)
    const left = all.length - lines.length
    return [...(left > 0 ? [`  and ${left} more`] : []), ...lines, `  ${this.summary()}`]
  }

  /** What has been done so far. */
  summary(): string {
    return [counted(this.#steps, 'step'), ...(this.#tokens > 0 ? [counted(this.#tokens, 'token')] : [])].join(', ')
  }

  #ended(step: string, at: number, { tool_calls: calls, tokens }: Spent): Line {
    const { type = '', since = at } = this.#going.get(step) ?? {}
    this.#going.delete(step)
    this.#steps += 1
    this.#tokens += tokens
    const used = [...(calls > 0 ? [counted(calls, 'tool call')] : []), ...(tokens > 0 ? [counted(tokens, 'token')] : [])]
    return { text: [`✓ ${step}`, type, shownMs(at - since), ...used].join('  '), tone: 'green' }
  }
}

/** What is said of an event besides those that end well. */
const LINES: { readonly [K in RunEvent['type']]?: (event: RunEvent) => Line } = {
  node_failed: ({ step, data }) => ({ text: `✗ ${step}  ${errorText(data.error)}`, tone: 'red' }),
  node_cancelled: ({ step }) => ({ text: `- ${step}  cancelled`, tone: 'dim' }),
  node_retrying: ({ step, data }) => ({ text: `↻ ${step}  ${errorText(data.error)}`, tone: 'yellow' }),
  run_resumed: () => ({ text: '… taken up again', tone: 'dim' }),
  run_compensating: ({ data }) => ({ text: `↶ undoing what was done: ${errorText(data.error)}`, tone: 'yellow' }),
}

interface Spent {
  readonly tool_calls: number
  readonly tokens: number
}
const spentIn = (spent: Json | undefined) => (spent ?? { tool_calls: 0, tokens: 0 }) as unknown as Spent

/** What a step that goes on has to say. */
function saidIn({ type, data }: RunEvent): string {
  if (type === 'node_waiting') return data.event === undefined ? 'waits' : `waits for "${oneLine(textOf(data.event))}"`
  if (type === 'node_retrying') return `again at ${textOf(data.due)}`
  if (type === 'node_forked') return counted((data.children as readonly Json[]).length, 'part')
  if (type !== 'node_progress') return ''
  const percent = data.fraction === undefined ? '' : ` ${Math.floor(Number(data.fraction) * 100)} %`
  return `${oneLine(textOf(data.message))}${percent}`.trim()
}

function errorText(error: Json | undefined): string {
  const { code = 'FAILED', message = '' } = (error ?? {}) as unknown as Partial<PublicError>
  return `${code}: ${oneLine(message, 400)}`
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
