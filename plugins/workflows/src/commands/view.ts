import type { ErrorTold, Json, RunEvent } from '@svc/core/contracts'
import { counted, oneLine, shownMs } from './line.ts'
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
    const { step = '', data, at } = event
    const going = this.#going.get(step)
    switch (event.type) {
      case 'node_started':
        this.#going.set(step, { type: String(data.node_type), since: going?.since ?? at, said: '' })
        return undefined
      case 'node_completed':
        return this.#ended(step, at, spentIn(data.spent))
      case 'node_failed':
        this.#going.delete(step)
        return { text: `✗ ${step}  ${errorText(data.error)}`, tone: 'red' }
      case 'node_cancelled':
        this.#going.delete(step)
        return { text: `- ${step}  cancelled`, tone: 'dim' }
      case 'node_retrying':
        if (going) going.said = `again at ${String(data.due)}`
        return { text: `↻ ${step}  ${errorText(data.error)}`, tone: 'yellow' }
      case 'run_resumed':
        return { text: '… taken up again', tone: 'dim' }
      case 'run_compensating':
        return { text: `↶ undoing what was done: ${errorText(data.error)}`, tone: 'yellow' }
      default:
        if (going) going.said = saidIn(event)
        return undefined
    }
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

interface Spent {
  readonly tool_calls: number
  readonly tokens: number
}
const spentIn = (spent: Json | undefined) => (spent ?? { tool_calls: 0, tokens: 0 }) as unknown as Spent

/** What a step that goes on has to say. */
function saidIn({ type, data }: RunEvent): string {
  if (type === 'node_waiting') return data.event === undefined ? 'waits' : `waits for "${oneLine(String(data.event))}"`
  if (type === 'node_forked') return counted((data.children as readonly Json[]).length, 'part')
  if (type !== 'node_progress') return ''
  const percent = data.fraction === undefined ? '' : ` ${Math.floor(Number(data.fraction) * 100)} %`
  return `${oneLine(String(data.message ?? ''))}${percent}`.trim()
}

function errorText(error: Json | undefined): string {
  const { code = 'FAILED', message = '' } = (error ?? {}) as unknown as Partial<ErrorTold>
  return `${code}: ${oneLine(message, 400)}`
}
