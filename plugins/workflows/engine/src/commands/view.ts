import { oneLine } from '@svc/plugin-kit'
import type { PublicError, Json, RunEvent } from '@svc/core/contracts'
import { counted, shownMs } from './line.ts'
import type { Line } from './screen.ts'

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
