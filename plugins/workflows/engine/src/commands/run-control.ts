import { statusRecord } from '@svc/api-types'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { CallContext } from '@svc/core'
import type { Workflows } from '@svc/core/contracts'
import { lineInvalid, table } from '@svc/plugin-kit'
import { contextOf, counted, jsonOf, openRuns, RUN_ARG } from './arguments.ts'

// Commands that talk to running runs: pause, resume, events and queries.

/** What a pause or resume has done. */
interface Done {
  readonly facts: object
  readonly text: string
  readonly code?: number
}

interface Flagged {
  readonly run: string | undefined
  readonly workflow: string | undefined
  readonly json: boolean
}

/** Pauses or resumes a run or a workflow, and prints the result. Throws COMMAND_LINE_INVALID unless one of them is given. */
async function changeOne(
  command: SvcCommand,
  name: 'pause' | 'resume',
  { run, workflow, json }: Flagged,
  [ofRun, ofWorkflow]: readonly [ofRun: Change, ofWorkflow: Change]
): Promise<number> {
  const change = run === undefined ? ofWorkflow : ofRun
  const subject = run ?? workflow
  if (subject === undefined || (run !== undefined && workflow !== undefined))
    throw lineInvalid('name either a run or a workflow', `workflows ${name} <run> | workflows ${name} --workflow <name>`)
  const ctx = contextOf(command, name)
  const { facts, text, code = 0 } = await change(await openRuns(command, ctx), subject, ctx)
  command.print(json ? JSON.stringify(facts) : text)
  return code
}

type Change = (workflows: Workflows, name: string, ctx: CallContext) => Promise<Done>

const PAUSED_FLAGS = {
  workflow: Flags.string({ summary: 'Workflow to take instead of a run', helpValue: '<name>' }),
  ...JSON_FLAG,
}
const RUN_OR_WORKFLOW = { run: Args.string({ description: 'Id of a run', ignoreStdin: true }) }

export class WorkflowsPause extends SvcCommand {
  static override summary = 'Pause a run, or a workflow'
  static override description =
    'A paused run finishes its running nodes and starts no further node. It keeps its questions and events, also over restarts. New runs of a paused workflow are stored and wait; running ones continue. Exits with 1 if a node of the run still runs after ten seconds: the run is paused when that node ends.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> 4f0c',
    '<%= config.bin %> <%= command.id %> --workflow release',
  ]
  static override args = RUN_OR_WORKFLOW
  static override flags = PAUSED_FLAGS

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsPause)
    return changeOne(this, 'pause', { run: args.run, workflow: flags.workflow, json: flags.json }, [pauseRun, pauseWorkflow])
  }
}

const pauseWorkflow: Change = async (workflows, workflow, ctx) => {
  await workflows.pauseWorkflow(workflow, ctx)
  return { facts: { workflow, paused: true }, text: `${workflow} is paused` }
}

const pauseRun: Change = async (workflows, id, ctx) => {
  const ending = new AbortController()
  // without a server, this process takes the run to pause it
  const working = workflows.work(id, { ...ctx, signal: AbortSignal.any([ctx.signal, ending.signal]) })
  const [run] = await Promise.all([workflows.pause(id, ctx).finally(() => ending.abort()), working])
  const facts = statusRecord(run)
  if (run.status !== 'running') return { facts, text: `${run.id} has ended: ${run.status}` }
  return run.pausedAt === undefined
    ? { facts, text: `${run.id} is being paused`, code: 1 }
    : { facts, text: `${run.id} is paused` }
}

export class WorkflowsResume extends SvcCommand {
  static override summary = 'Resume a paused run, or a paused workflow with the runs that wait'
  static override description = 'A running server executes the runs. Without a server, run `svc workflows status <run> --follow`.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> 4f0c',
    '<%= config.bin %> <%= command.id %> --workflow release',
  ]
  static override args = RUN_OR_WORKFLOW
  static override flags = PAUSED_FLAGS

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsResume)
    return changeOne(this, 'resume', { run: args.run, workflow: flags.workflow, json: flags.json }, [resumeRun, resumeWorkflow])
  }
}

const resumeWorkflow: Change = async (workflows, workflow, ctx) => {
  const released = await workflows.resumeWorkflow(workflow, ctx)
  return { facts: { workflow, paused: false, released }, text: `${workflow} is resumed; ${counted(released, 'run')} waited` }
}

const resumeRun: Change = async (workflows, id, ctx) => {
  const run = await workflows.resume(id, ctx)
  return { facts: statusRecord(run), text: `${run.id} is resumed` }
}

export class WorkflowsSignal extends SvcCommand {
  static override summary = 'Send an event to a run'
  static override description =
    'Steps that wait for the event continue with its data. If the definition of the run has `signals`, the data must match the schema of the event.'
  static override examples = [`<%= config.bin %> <%= command.id %> 4f0c paid --data '{"amount": 12}'`]
  static override args = {
    ...RUN_ARG,
    event: Args.string({ description: 'Name of the event', required: true, ignoreStdin: true }),
  }
  static override flags = {
    data: Flags.string({ summary: 'Data as JSON, or @ and the path of a JSON file', helpValue: '<json>' }),
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsSignal)
    const data =
      flags.data === undefined ? null : await jsonOf('data', flags.data, 'workflows signal <run> <event> [--data <json>]')
    const ctx = contextOf(this, 'signal')
    await (await openRuns(this, ctx)).signal(args.run, { name: args.event, data }, ctx)
    if (flags.json) this.print(JSON.stringify({ success: true }))
    else this.note(`sent ${args.event}; a running server continues the run, or run: svc workflows status ${args.run} --follow`)
  }
}

export class WorkflowsQuery extends SvcCommand {
  static override summary = 'Read a query of a run'
  static override description =
    'Prints the value as JSON, and changes nothing. Without a query, lists the queries and events of the run.'
  static override examples = ['<%= config.bin %> <%= command.id %> 4f0c', '<%= config.bin %> <%= command.id %> 4f0c progress']
  static override args = { ...RUN_ARG, query: Args.string({ description: 'Name of the query', ignoreStdin: true }) }
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsQuery)
    const ctx = contextOf(this, 'query')
    const workflows = await openRuns(this, ctx)
    if (args.query !== undefined) {
      const value = await workflows.query(args.run, args.query, ctx)
      return this.print(
        flags.json ? JSON.stringify({ workflow_id: args.run, name: args.query, value }) : JSON.stringify(value, null, 2)
      )
    }
    const { queries, signals } = await workflows.interface(args.run, ctx)
    const named = Object.entries(queries).map(([name, { description = null }]) => ({ name, description }))
    if (flags.json) return this.print(JSON.stringify({ workflow_id: args.run, queries: named, signals: signals ?? null }))
    const rows = [
      ...named.map(({ name, description }) => [name, 'query', description ?? '']),
      ...Object.keys(signals ?? {}).map(name => [name, 'event', '']),
    ]
    if (rows.length === 0) return this.note('the definition of the run has no queries and no signals')
    for (const line of table([['NAME', 'KIND', 'DESCRIPTION'], ...rows])) this.print(line)
  }
}
