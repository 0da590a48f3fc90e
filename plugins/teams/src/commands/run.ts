import { JSON_FLAG, oneLine, readLine } from '@svc/command-line'
import { systemUse, type Use } from '@svc/core'
import { type Command, type Run, type RunEvent, Teams, Workflows } from '@svc/core/contracts'
import type { TeamResult } from '../result.ts'
import { shownText, USAGE } from './line.ts'

/** Ending a run that nobody wants any more takes no longer. */
const CANCEL_MS = 12_000

/** `svc teams run <team> <task>`: the answer goes to the standard output, who works and how they came out of it to the standard error. */
const run: Command = async ({ args, signal, host, print, note }) => {
  const {
    values: { json },
    positionals: words,
  } = readLine(args, USAGE.run, JSON_FLAG, [2, Number.POSITIVE_INFINITY])
  const [team = '', ...task] = words
  const use = systemUse(signal, 'svc teams run')
  const running = await host()
  const workflows = running.service(Workflows)
  const { id } = await running.service(Teams).start(team, task.join(' '), use)
  note(`run ${id}`)
  const ended = await watched(workflows, id, note, use)
  if (json) print(JSON.stringify(ended))
  else if (ended.status === 'completed') show(ended.result as unknown as TeamResult, print, note)
  if (ended.status === 'completed') return 0
  note(`failed: ${ended.error?.code ?? ''} ${oneLine(ended.error?.message ?? '', 500)}`)
  return 1
}

export default run

type Tell = (line: string) => void

/** The run once it has ended. Whoever leaves wants no more of it. */
async function watched(workflows: Workflows, id: string, note: Tell, use: Use): Promise<Run> {
  try {
    for await (const event of workflows.events(id, 0, use)) tell(event, note)
    use.signal.throwIfAborted()
    return await workflows.get(id, use)
  } catch (error) {
    if (use.signal.aborted) await workflows.cancel(id, { ...use, signal: AbortSignal.timeout(CANCEL_MS) })
    throw error
  }
}

const WORDS: Partial<Record<RunEvent['type'], string>> = {
  node_started: 'works',
  node_completed: 'has answered',
  node_failed: 'has failed',
}

/** Members are the steps within the team's own. */
function tell({ type, step, node }: RunEvent, note: Tell): void {
  const words = WORDS[type]
  if (words && node && step?.includes('/')) note(`${node} ${words}`)
}

function show(result: TeamResult, print: Tell, note: Tell): void {
  const { answer, members, rounds, agreed, approved, reasons = [], positions = {}, spent } = result
  if (answer !== null) print(shownText(answer))
  for (const [name, text] of Object.entries(positions)) print(`## ${name}\n${shownText(text)}\n`)
  for (const [name, { status, error }] of Object.entries(members))
    note(`${name}: ${status}${error ? ` (${oneLine(error.message, 300)})` : ''}`)
  if (agreed !== undefined) note(agreed ? 'they agreed' : 'they did not agree')
  if (approved !== undefined) note(approved ? 'approved' : `not approved: ${oneLine(reasons.join('; '), 500)}`)
  note(`${rounds === undefined ? '' : `rounds: ${rounds}, `}tokens: ${spent.tokens}, tool calls: ${spent.tool_calls}`)
}
