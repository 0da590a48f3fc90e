import { createInterface } from 'node:readline/promises'
import { stripVTControlCharacters, styleText } from 'node:util'
import type { Json, PublicError, RunEvent } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { counted, shownMs } from './arguments.ts'

type Tone = 'green' | 'red' | 'yellow' | 'dim'

/** A permanent line. */
export interface Line {
  readonly text: string
  readonly tone?: Tone
}

/** Output of a run: permanent lines and, on a terminal, live lines below them. */
export interface Screen extends Disposable {
  readonly hasPerson: boolean
  line(line: Line): void
  /** Sets the function that draws the live lines. */
  live(draw: () => readonly string[]): void
  /** Asks the user. Returns undefined if the input ends or the signal aborts. Lines that are printed meanwhile appear afterwards. */
  question(text: string, signal: AbortSignal): Promise<string | undefined>
}

/** Prints plain lines. */
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

/** The terminal, or undefined if there is none. */
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
  // an open readline interface catches Ctrl-C, so pass it on
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

/** A view of a run, built from its events. */
export class RunView {
  readonly #going = new Map<string, Going>()
  #steps = 0
  #tokens = 0

  /** The permanent line of an event. */
  take(event: RunEvent): Line | undefined {
    const { type, step = '', data, at } = event
    const going = this.#going.get(step)
    if (type === 'node_completed') return this.#ended(step, at, spentIn(data.spent))
    if (type === 'node_started') this.#going.set(step, { type: textOf(data.node_type), since: going?.since ?? at, said: '' })
    else if (going) going.said = saidIn(event)
    if (type === 'node_failed' || type === 'node_cancelled') this.#going.delete(step)
    return LINES[type]?.(event)
  }

  /** The live lines: one for each active step. */
  live(now: number): readonly string[] {
    const all = [...this.#going]
    const frame = FRAMES[Math.floor(now / FRAME_MS) % FRAMES.length]!
    const lines = all
      .slice(-MOST)
      .map(([step, { type, since, said }]) => `${frame} ${step}  ${type}  ${shownMs(now - since)}  ${said}`)
    const left = all.length - lines.length
    return [...(left > 0 ? [`  and ${left} more`] : []), ...lines, `  ${this.summary()}`]
  }

  /** A summary of the completed steps. */
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

/** The permanent lines of other events than completed steps. */
const LINES: { readonly [K in RunEvent['type']]?: (event: RunEvent) => Line } = {
  node_failed: ({ step, data }) => ({ text: `✗ ${step}  ${errorText(data.error)}`, tone: 'red' }),
  node_cancelled: ({ step }) => ({ text: `- ${step}  cancelled`, tone: 'dim' }),
  node_retrying: ({ step, data }) => ({ text: `↻ ${step}  ${errorText(data.error)}`, tone: 'yellow' }),
  run_paused: () => ({ text: '‖ paused', tone: 'yellow' }),
  run_resumed: () => ({ text: '… resumed', tone: 'dim' }),
  run_compensating: ({ data }) => ({ text: `↶ running compensations: ${errorText(data.error)}`, tone: 'yellow' }),
}

interface Spent {
  readonly tool_calls: number
  readonly tokens: number
}
const spentIn = (spent: Json | undefined) => (spent ?? { tool_calls: 0, tokens: 0 }) as unknown as Spent

/** The live text of an active step. */
function saidIn({ type, data }: RunEvent): string {
  if (type === 'node_waiting') return data.event === undefined ? 'waits' : `waits for "${oneLine(textOf(data.event))}"`
  if (type === 'node_retrying') return `retries at ${textOf(data.due)}`
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
