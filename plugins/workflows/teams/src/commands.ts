import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { type CallContext, codeOf, systemContext } from '@svc/core'
import {
  type Run,
  type RunEvent,
  type RunUsage,
  type TeamBudget,
  type TeamDefinition,
  type TeamInfo,
  type TeamMember,
  type TeamMessage,
  type TeamRun,
  type TeamRunInfo,
  type TeamRunStatus,
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
    'Prints the answer to the standard output, and the progress of the members to the standard error. Ctrl-C cancels the run. If both a flag and the team set a limit, the stricter one applies. If a limit stops the team before its answer, the command prints the last messages of the members and exits with 1.'
  static override examples = ['<%= config.bin %> <%= command.id %> reviewers "What is wrong with README.md?"']
  static override args = {
    team: Args.string({ description: 'Name of a team', required: true, ignoreStdin: true }),
    task: Args.string({ description: 'Task of the team', required: true, multiple: true, ignoreStdin: true }),
  }
  static override flags = {
    ...JSON_FLAG,
    tokens: Flags.integer({ description: 'Maximum tokens', min: 0 }),
    'tool-calls': Flags.integer({ description: 'Maximum tool calls', min: 0 }),
    cost: Flags.string({ description: 'Maximum cost, in the currency of models.prices' }),
    time: Flags.string({ description: 'Maximum time, such as 90s or 10m' }),
    rounds: Flags.integer({ description: 'Maximum rounds', min: 1 }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(TeamsRun)
    const ctx = systemContext(this.signal, 'svc teams run')
    const running = await this.host()
    const workflows = running.service(Workflows)
    const { id } = await running.service(Teams).start({ team: args.team, task: args.task.join(' '), ...budgetOf(flags) }, ctx)
    this.note(`run ${id}`)
    const ended = await watched(workflows, id, this.note, ctx)
    if (flags.json) this.print(JSON.stringify(ended))
    else if (ended.status === 'completed') show(ended.result as unknown as TeamResult, this.print, this.note)
    if (ended.status === 'completed') return isUnanswered(ended.result as unknown as TeamResult) ? 1 : 0
    this.note(`failed: ${ended.error?.code ?? ''} ${oneLine(ended.error?.message ?? '', 500)}`)
    return 1
  }
}

interface BudgetFlags {
  readonly tokens?: number | undefined
  readonly 'tool-calls'?: number | undefined
  readonly cost?: string | undefined
  readonly time?: string | undefined
  readonly rounds?: number | undefined
}

/** The budget of the flags. A text that is not a number is reported by the service. */
function budgetOf({ tokens, 'tool-calls': calls, cost, time, rounds }: BudgetFlags): { readonly budget?: TeamBudget } {
  const amount = cost === undefined || cost.trim() === '' || Number.isNaN(Number(cost)) ? cost : Number(cost)
  const given = Object.entries({ tokens, tool_calls: calls, cost: amount, time, rounds }).filter(
    ([, value]) => value !== undefined
  )
  return given.length === 0 ? {} : { budget: Object.fromEntries(given) as TeamBudget }
}

/** Whether a budget stopped the team before its answer. */
const isUnanswered = ({ answer, partial }: TeamResult) => partial !== undefined && answer === null

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
function reportStep({ type, step, node, data }: RunEvent, note: PrintLine): void {
  const words = WORDS[type]
  const [, round] = MEMBER_STEP.exec(step ?? '') ?? []
  if (!words || !node || round === undefined) return
  const { tokens = 0, tool_calls: calls = 0, cost } = Object(data.spent) as StepSpent
  const used = data.spent ? ` (${usageText({ tokens, toolCalls: calls, ...(cost === undefined ? {} : { cost }) })})` : ''
  note(`round ${round}: ${node} ${words}${used}`)
}

interface StepSpent {
  readonly tokens?: number
  readonly tool_calls?: number
  readonly cost?: number
}

/** `team/2-3-ann/ann`: the second round. */
const MEMBER_STEP = /\/(\d+)-\d+-[a-z0-9_]+\/[^/]+$/

const usageText = ({ tokens, toolCalls, cost }: RunUsage) =>
  `tokens: ${tokens}, tool calls: ${toolCalls}${cost === undefined ? '' : `, cost: ${Number(cost.toPrecision(6))}`}`

function show(result: TeamResult, print: PrintLine, note: PrintLine): void {
  const { answer, members, rounds, agreed, approved, reasons = [], positions = {}, partial, spent } = result
  if (answer !== null) print(shownText(answer))
  for (const [name, text] of Object.entries(positions)) print(`## ${name}\n${shownText(text)}\n`)
  if (partial) note(`partial: ${oneLine(partial.reason, 500)}`)
  for (const [name, { status, stopped_by: by, error }] of Object.entries(members))
    note(`${name}: ${status}${by ? ` (budget: ${by})` : ''}${error ? ` (${oneLine(error.message, 300)})` : ''}`)
  if (agreed !== undefined) note(agreed ? 'the members agreed' : 'the members did not agree')
  if (approved !== undefined) note(approved ? 'approved' : `not approved: ${oneLine(reasons.join('; '), 500)}`)
  const { tool_calls: toolCalls, ...used } = spent
  note(`${rounds === undefined ? '' : `rounds: ${rounds}, `}${usageText({ ...used, toolCalls })}`)
}

class TeamsShow extends SvcCommand {
  static override summary = 'Show a team and its members, or a run of a team'
  static override description = 'A run is shown with its rounds, messages, tools and costs.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> reviewers',
    '<%= config.bin %> <%= command.id %> 5b7c5a5e-6a0f-4d2e-9a57-5a4f1c6f0c11 --json',
  ]
  static override args = {
    team: Args.string({ description: 'Name of a team, or id of a run', required: true, ignoreStdin: true }),
  }
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(TeamsShow)
    const ctx = systemContext(this.signal, 'svc teams show')
    const teams = (await this.host()).service(Teams)
    const shown = await teams.show(args.team, ctx).catch(async (error: unknown) => {
      if (codeOf(error) !== 'TEAM_UNKNOWN') throw error
      const run = await teams.run(args.team, ctx).catch(() => undefined)
      if (!run) throw error
      return run
    })
    if ('id' in shown) {
      if (flags.json) return this.print(JSON.stringify(shown))
      for (const line of runLines(shown)) this.print(line)
      return
    }
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

const RUNS_HEAD = ['RUN', 'TEAM', 'STATUS', 'STARTED', 'ROUNDS', 'TOKENS', 'COST', 'TASK']
const STATUSES: readonly TeamRunStatus[] = ['running', 'completed', 'partial', 'failed', 'cancelled']

class TeamsRuns extends SvcCommand {
  static override summary = 'List runs of teams, newest first'
  static override examples = ['<%= config.bin %> <%= command.id %> --team reviewers --status partial']
  static override flags = {
    ...JSON_FLAG,
    team: Flags.string({ description: 'Only runs of this team' }),
    status: Flags.option({ description: 'Only runs with this status', options: STATUSES })(),
    limit: Flags.integer({ description: 'Maximum number of runs', default: 20, min: 1, max: 200 }),
    cursor: Flags.string({ description: 'Continue after this page' }),
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(TeamsRuns)
    const { team, status, limit, cursor } = flags
    const given = Object.entries({ team, status, cursor }).filter(([, value]) => value !== undefined)
    const teams = (await this.host()).service(Teams)
    const page = await teams.runs({ limit, ...Object.fromEntries(given) }, systemContext(this.signal, 'svc teams runs'))
    if (flags.json) return this.print(JSON.stringify(page))
    if (page.runs.length === 0) this.note('no runs found')
    else for (const line of table([RUNS_HEAD, ...page.runs.map(runCells)])) this.print(line)
    if (page.next !== undefined) this.note(`more: --cursor ${page.next}`)
  }
}

const runCells = ({ id, team, status, startedAt, rounds, spent, task }: TeamRunInfo): string[] => [
  id,
  team,
  status,
  new Date(startedAt).toISOString(),
  String(rounds),
  String(spent.tokens),
  spent.cost === undefined ? '-' : String(Number(spent.cost.toPrecision(6))),
  oneLine(task, 60),
]

function runLines(run: TeamRun): string[] {
  const { id, team, formation, status, stop, error, task, spent, budget, members, tree } = run
  return [
    `${id}: ${team} (${formation}), ${status}`,
    `task: ${oneLine(task, 300)}`,
    ...(stop ? [`stopped by its budget of ${stop.budget}: ${oneLine(stop.reason, 300)}`] : []),
    ...(error ? [`error: ${error.code} ${oneLine(error.message, 300)}`] : []),
    ...(budget ? [`budget: ${JSON.stringify(budget)}`] : []),
    usageText(spent),
    '',
    ...members.map(
      member =>
        `${member.name}: ${member.status}${member.stoppedBy ? ` (budget: ${member.stoppedBy})` : ''}, ${usageText(member.spent)}`
    ),
    ...(tree === undefined ? ['', 'the messages were deleted with the workflow run'] : []),
    ...(tree ?? []).flatMap(({ round, messages }) => ['', `round ${round}`, ...messages.flatMap(messageLines)]),
  ]
}

function messageLines({ member, status, model, prompt, reply, error, tools, spent }: TeamMessage): string[] {
  return [
    `  ${member}: ${status}${model === undefined ? '' : `, ${oneLine(model, 100)}`}, ${usageText(spent)}`,
    `    asked: ${oneLine(prompt, 200)}`,
    ...tools.map(({ tool, success }) => `    tool ${oneLine(tool, 100)}: ${success ? 'done' : 'failed'}`),
    ...(reply === undefined ? [] : [`    said: ${oneLine(reply, 200)}`]),
    ...(error ? [`    error: ${error.code} ${oneLine(error.message, 200)}`] : []),
  ]
}

export const COMMANDS = { 'teams:list': TeamsList, 'teams:show': TeamsShow, 'teams:run': TeamsRun, 'teams:runs': TeamsRuns }

/** Removes control characters from the text of models. */
export const shownText = (text: string): string =>
  text.replace(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')
