import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { type CallContext, systemContext } from '@svc/core'
import {
  type Run,
  type RunEvent,
  type TeamDefinition,
  type TeamInfo,
  type TeamMember,
  Teams,
  Workflows,
} from '@svc/core/contracts'
import { oneLine, table } from '@svc/plugin-kit'
import { lineOf } from './errors.ts'
import type { TeamResult } from './team-node.ts'

/** Time limit of a cancellation. */
const CANCEL_MS = 12_000

class TeamsRun extends SvcCommand {
  static override summary = 'Run a team on a task'
  static override description =
    'Prints the answer to the standard output, and the progress of the members to the standard error. Ctrl-C cancels the run.'
  static override examples = ['<%= config.bin %> <%= command.id %> reviewers "What is wrong with README.md?"']
  static override args = {
    team: Args.string({ description: 'Name of a team', required: true, ignoreStdin: true }),
    task: Args.string({ description: 'Task of the team', required: true, multiple: true, ignoreStdin: true }),
  }
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(TeamsRun)
    const ctx = systemContext(this.signal, 'svc teams run')
    const running = await this.host()
    const workflows = running.service(Workflows)
    const { id } = await running.service(Teams).start(args.team, args.task.join(' '), ctx)
    this.note(`run ${id}`)
    const ended = await watched(workflows, id, this.note, ctx)
    if (flags.json) this.print(JSON.stringify(ended))
    else if (ended.status === 'completed') show(ended.result as unknown as TeamResult, this.print, this.note)
    if (ended.status === 'completed') return 0
    this.note(`failed: ${ended.error?.code ?? ''} ${oneLine(ended.error?.message ?? '', 500)}`)
    return 1
  }
}

type PrintLine = (line: string) => void

/** Shows a run to its end. Cancels it after Ctrl-C. */
async function watched(workflows: Workflows, id: string, note: PrintLine, ctx: CallContext): Promise<Run> {
  try {
    for await (const event of workflows.events(id, 0, ctx)) reportStep(event, note)
    ctx.signal.throwIfAborted()
    return await workflows.get(id, ctx)
  } catch (error) {
    if (ctx.signal.aborted) await workflows.cancel(id, { ...ctx, signal: AbortSignal.timeout(CANCEL_MS) })
    throw error
  }
}

const WORDS: Partial<Record<RunEvent['type'], string>> = {
  node_started: 'started',
  node_completed: 'answered',
  node_failed: 'failed',
}

/** Reports member steps, which are inside the step of the team. */
function reportStep({ type, step, node }: RunEvent, note: PrintLine): void {
  const words = WORDS[type]
  if (words && node && step?.includes('/')) note(`${node} ${words}`)
}

function show(result: TeamResult, print: PrintLine, note: PrintLine): void {
  const { answer, members, rounds, agreed, approved, reasons = [], positions = {}, spent } = result
  if (answer !== null) print(shownText(answer))
  for (const [name, text] of Object.entries(positions)) print(`## ${name}\n${shownText(text)}\n`)
  for (const [name, { status, error }] of Object.entries(members))
    note(`${name}: ${status}${error ? ` (${oneLine(error.message, 300)})` : ''}`)
  if (agreed !== undefined) note(agreed ? 'the members agreed' : 'the members did not agree')
  if (approved !== undefined) note(approved ? 'approved' : `not approved: ${oneLine(reasons.join('; '), 500)}`)
  note(`${rounds === undefined ? '' : `rounds: ${rounds}, `}tokens: ${spent.tokens}, tool calls: ${spent.tool_calls}`)
}

class TeamsShow extends SvcCommand {
  static override summary = 'Show a team and its members'
  static override examples = ['<%= config.bin %> <%= command.id %> reviewers']
  static override args = { team: Args.string({ description: 'Name of a team', required: true, ignoreStdin: true }) }
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(TeamsShow)
    const shown = await (await this.host()).service(Teams).show(args.team, systemContext(this.signal, 'svc teams show'))
    if (flags.json) return this.print(JSON.stringify(shown))
    for (const line of linesOf(shown)) this.print(line)
    for (const problem of shown.info.problems ?? []) this.note(oneLine(lineOf(problem), 300))
  }
}

function linesOf({ info, definition }: { readonly info: TeamInfo; readonly definition: TeamDefinition }): string[] {
  const { name, description, formation, members, rounds, agreement, budget } = definition
  return [
    `${name}: ${formation} (${info.source})`,
    ...(description ? [oneLine(description, 200)] : []),
    ...(rounds === undefined ? [] : [`rounds: ${rounds}`]),
    ...(agreement === undefined ? [] : [`agreement: ${agreement}`]),
    ...(budget ? [`budget: ${JSON.stringify(budget)}`] : []),
    ...Object.entries(members).flatMap(memberLines),
  ]
}

function memberLines([name, { role, goal, lead, profile, mode, tools, budget }]: [string, TeamMember]): string[] {
  const facts = { lead, profile, mode, tools: tools?.join(' '), budget: budget && JSON.stringify(budget) }
  const reported = Object.entries(facts).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}: ${value === '' ? 'none' : value}`]
  )
  return ['', `${name}: ${oneLine(role, 200)}`, `  ${oneLine(goal, 400)}`, ...reported.map(line => `  ${line}`)]
}

const LIST_HEAD = ['TEAM', 'FORMATION', 'MEMBERS', 'FROM', 'DESCRIPTION']

class TeamsList extends SvcCommand {
  static override summary = 'List teams'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(TeamsList)
    const teams = await (await this.host()).service(Teams).list(systemContext(this.signal, 'svc teams list'))
    if (flags.json) return this.print(JSON.stringify({ teams }))
    if (teams.length === 0) return this.note('no teams found; add a team file to a folder of teams.roots')
    for (const line of table([LIST_HEAD, ...teams.map(teamCells)])) this.print(line)
    for (const { source, problems = [] } of teams)
      for (const problem of problems) this.note(`${source}: ${oneLine(lineOf(problem), 300)}`)
  }
}

const teamCells = ({ name, formation, members, source, description = '', problems }: TeamInfo): string[] => [
  name,
  formation ?? '-',
  members.join(' '),
  source,
  problems ? 'invalid, see below' : oneLine(description),
]

export const COMMANDS = { 'teams:list': TeamsList, 'teams:show': TeamsShow, 'teams:run': TeamsRun }

/** Removes control characters from the text of models. */
export const shownText = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')
