import { statusRecord } from '@svc/api-types'
import { codeOf, messageOf, systemContext } from '@svc/core'
import type { CommandContext, Json, Question, Run, RunEvent, Workflows } from '@svc/core/contracts'
import { oneLine } from '@svc/plugin-kit'
import { answerOf, answersTo, shownMs } from './arguments.ts'
import { personalScreen, plainScreen, type Screen, RunView } from './screen.ts'

/** The exit code when the user leaves a waiting run. */
const LEFT_WAITING = 3
const INTERRUPTED = 130
const CANCEL_MS = 15_000

interface Followed {
  readonly call: CommandContext
  readonly workflows: Workflows
  readonly id: string
  readonly json: boolean
}

/**
 * Shows a run to its end, executes it if no other process does, and asks its questions on the terminal. Ctrl-C cancels the run;
 * Ctrl-D at a question leaves it waiting. Returns the exit code: 0 completed, 1 failed, 3 left waiting, 130 cancelled.
 */
export async function follow(
  call: CommandContext,
  workflows: Workflows,
  id: string,
  { json }: { readonly json: boolean }
): Promise<number> {
  const ending = new AbortController()
  // not the signal of Ctrl-C, because a cancelled run still runs its compensations
  const working = workflows.work(id, systemContext(ending.signal, 'svc workflows'))
  try {
    // reports the first failure
    const [code] = await Promise.all([watched({ call, workflows, id, json }, ending), working.then(() => {})])
    return code
  } finally {
    ending.abort()
  }
}

async function watched(followed: Followed, ending: AbortController): Promise<number> {
  const { call, workflows, id, json } = followed
  const leaving = new AbortController()
  try {
    const signal = AbortSignal.any([call.signal, leaving.signal])
    await shown(followed, signal, () => leaving.abort())
    return printEnd(call, await workflows.get(id, systemContext(call.signal)), json)
  } catch (error) {
    if (call.signal.aborted) return await cancelled(followed)
    if (!leaving.signal.aborted) throw error
    call.note(`the run waits: svc workflows status ${id}`)
    return LEFT_WAITING
  } finally {
    ending.abort()
  }
}

/** Shows the events of a run until it ends. Throws if the signal aborts. */
async function shown({ call, workflows, id, json }: Followed, signal: AbortSignal, leave: () => void): Promise<void> {
  using screen: Screen = (json ? undefined : personalScreen()) ?? plainScreen(json ? () => {} : call.note)
  const ctx = systemContext(signal, 'svc workflows')
  const view = new RunView()
  const answer: ConstructorParameters<typeof Asking>[0]['answer'] = (step, value) => workflows.answer(id, { step, value }, ctx)
  const asking = new Asking({ screen, answer, leave, signal })
  screen.live(() => view.live(Date.now()))
  try {
    for await (const event of workflows.events(id, 0, ctx)) {
      const line = view.take(event)
      if (line) screen.line(line)
      if (screen.hasPerson) ask(asking, event)
      else if (event.type === 'node_waiting') call.note(waitText(id, waitOf(event)))
    }
  } finally {
    asking.end()
    await asking.ended
  }
}

function ask(asking: Asking, { type, step = '', data }: RunEvent): void {
  if (type === 'node_waiting' && data.ask) asking.put(step, data.ask as unknown as Question)
  else if (type.startsWith('node_')) asking.drop(step)
}

function waitOf({ step = '', data: { until, event, ask: question } }: RunEvent) {
  return {
    step,
    until: typeof until === 'string' ? Date.parse(until) : undefined,
    event: typeof event === 'string' ? event : undefined,
    ask: question as unknown as Question | undefined,
  }
}

async function cancelled({ call, workflows, id, json }: Followed): Promise<number> {
  call.note('cancelling the run; press Ctrl-C again to leave it as it is')
  const ctx = systemContext(AbortSignal.timeout(CANCEL_MS), 'svc workflows')
  const run = await workflows.cancel(id, ctx).catch((error: unknown) => {
    // the run has already ended
    if (codeOf(error) === 'INVALID_VALUE') return workflows.get(id, ctx)
    throw error
  })
  printEnd(call, run, json)
  return INTERRUPTED
}

function printEnd({ print, note }: CommandContext, run: Run, json: boolean): number {
  const { status, result, error, executionMs, id } = run
  if (json) print(JSON.stringify(statusRecord(run)))
  else if (status === 'completed') print(typeof result === 'string' ? result : JSON.stringify(result ?? null, null, 2))
  if (!json)
    note(`${id} ${status} after ${shownMs(executionMs)}${error ? `: ${error.code}: ${oneLine(error.message, 400)}` : ''}`)
  return status === 'completed' ? 0 : 1
}

interface Wait {
  readonly step: string
  readonly until?: number | undefined
  readonly event?: string | undefined
  readonly ask?: Question | undefined
}

/** Describes a wait and how to end it. */
export function waitText(id: string, { step, until, event, ask }: Wait): string {
  const end = until === undefined ? '' : ` until ${new Date(until).toISOString()}`
  if (ask)
    return `${step} asks${end}: ${oneLine(ask.message, 400)} (${answersTo(ask)})\n  svc workflows answer ${id} ${step} <answer>`
  return event === undefined ? `${step} waits${end}` : `${step} waits${end} for the event "${event}"`
}

interface AskingOptions {
  readonly screen: Screen
  readonly answer: (step: string, value: Json) => Promise<void>
  /** Called when the user ends the input. */
  readonly leave: () => void
  readonly signal: AbortSignal
}

/** Asks the questions of a run one after the other while the run continues. */
class Asking {
  readonly #parts: AskingOptions
  readonly #open = new Map<string, AbortController>()
  #last = Promise.resolve()

  constructor(parts: AskingOptions) {
    this.#parts = parts
  }

  put(step: string, question: Question): void {
    const dropped = new AbortController()
    this.#open.set(step, dropped)
    const signal = AbortSignal.any([this.#parts.signal, dropped.signal])
    this.#last = this.#last.then(() => this.#settle(step, question, signal))
  }

  /** Withdraws a question that was answered elsewhere or has timed out. */
  drop(step: string): void {
    this.#open.get(step)?.abort()
    this.#open.delete(step)
  }

  /** Withdraws all questions. */
  end(): void {
    for (const step of this.#open.keys()) this.drop(step)
  }

  /** Resolves when no question is open. */
  get ended(): Promise<void> {
    return this.#last
  }

  async #settle(step: string, question: Question, signal: AbortSignal): Promise<void> {
    const { screen, leave } = this.#parts
    if (!signal.aborted) screen.line({ text: `? ${step}  ${oneLine(question.message, 1_000)}`, tone: 'yellow' })
    for (;;) {
      const typed = signal.aborted ? undefined : await screen.question(`  ${step}: ${answersTo(question)}: `, signal)
      if (typed === undefined) return signal.aborted ? undefined : leave()
      const value = answerOf(question, typed)
      if (value !== undefined && (await this.#isTaken(step, value))) return
    }
  }

  /** Sends an answer. Returns false if the question is asked again. */
  async #isTaken(step: string, value: Json): Promise<boolean> {
    const { screen, answer, signal } = this.#parts
    try {
      await answer(step, value)
      return true
    } catch (error) {
      screen.line({ text: `  ${oneLine(messageOf(error), 400)}`, tone: 'red' })
      const { details } = Object(error) as { details?: { readonly field?: unknown } }
      return signal.aborted || !String(details?.field).startsWith('value')
    }
  }
}
