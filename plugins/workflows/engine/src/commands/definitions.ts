import { readFile, stat, writeFile } from 'node:fs/promises'
import { infoRecord, problemRecord } from '@svc/api-types'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { type CallContext, messageOf, shownPath } from '@svc/core'
import type { WorkflowInfo, WorkflowProblem, Workflows } from '@svc/core/contracts'
import { lineInvalid, oneLine, table } from '@svc/plugin-kit'
import { contextOf, counted, openWorkflows, WORKFLOW_ARG } from './arguments.ts'

/** `svc workflows validate <workflow>...`: everything that is wrong, each with its line; 1 where something is. */
export class WorkflowsValidate extends SvcCommand {
  static override summary = 'Check workflows and report everything that is wrong'
  static override description =
    'A file may lie anywhere. Each problem is shown with its line and a hint. Ends with 1 where there is a problem.'
  static override examples = ['<%= config.bin %> <%= command.id %> workflows/*.yaml']
  static override args = {
    workflow: Args.string({ description: 'Name or file of a workflow', required: true, multiple: true, ignoreStdin: true }),
  }
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(WorkflowsValidate)
    const workflows = await openWorkflows(this)
    const ctx = contextOf(this, 'validate')
    const found = await Promise.all(args.workflow.map(source => lookedAt(workflows, source, ctx)))
    const isGood = found.every(({ problems }) => problems.length === 0)
    if (flags.json) this.print(JSON.stringify({ valid: isGood, files: found.map(recordOf) }))
    else for (const line of found.flatMap(linesOf)) this.print(line)
    return isGood ? 0 : 1
  }
}

/** What was asked for, with the file it stands in where it has one. */
interface Looked {
  readonly source: string
  readonly place: string
  readonly problems: readonly WorkflowProblem[]
}

/** A file wherever it is, but one of code, which has to be imported; else a workflow by its name or path. */
async function lookedAt(workflows: Workflows, source: string, ctx: CallContext): Promise<Looked> {
  const found = CODE.test(source) ? undefined : await stat(source).catch(() => undefined)
  if (found?.isFile()) {
    const problems = await workflows.validate({ text: await readFile(source, 'utf8'), file: source }, ctx)
    return { source, place: source, problems }
  }
  const { info } = await workflows.show(source, ctx)
  return { source, place: placeOf(info, source), problems: info.problems ?? [] }
}

const CODE = /\.m?[jt]s$/

/** Where a person finds a workflow; what comes from a plugin is called as it was asked for. */
const placeOf = ({ file }: WorkflowInfo, otherwise: string) => (file === undefined ? otherwise : shownPath(file))

const recordOf = ({ source, problems }: Looked) => ({ source, problems: problems.map(problemRecord) })

const linesOf = ({ source, place, problems }: Looked) =>
  problems.length === 0 ? [`${source}: nothing is wrong`] : problemLines(place, problems)

/** Each problem as `file:line path message`, its hint below. */
const problemLines = (source: string, problems: readonly WorkflowProblem[]): string[] =>
  problems.flatMap(({ message, path, line, hint }) => [
    `${source}${line === undefined ? '' : `:${line}`} ${path === '' ? '' : `${path} `}${oneLine(message, 400)}`,
    ...(hint === undefined ? [] : [`  ${oneLine(hint, 400)}`]),
  ])

const LIST_HEAD = ['NAME', 'NODES', 'FROM', 'DESCRIPTION']

/** `svc workflows list`: those of plugins, and the files below the roots. */
export class WorkflowsList extends SvcCommand {
  static override summary = 'List workflows'
  static override description = 'Those of plugins, and the files below workflows.roots and <svc home>/workflows.'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(WorkflowsList)
    const all = await (await openWorkflows(this)).list(contextOf(this, 'list'))
    if (flags.json) return this.print(JSON.stringify({ workflows: all.map(infoRecord) }))
    if (all.length === 0) return this.note('there are no workflows; write one into a folder of workflows.roots')
    const rows = all.map(({ name, nodes, source, description = '', problems = [] }) => {
      const wrong = `cannot run: ${counted(problems.length, 'problem')}, svc workflows validate ${name}`
      return [name, problems.length > 0 ? '-' : String(nodes), source, problems.length > 0 ? wrong : oneLine(description)]
    })
    for (const line of table([LIST_HEAD, ...rows])) this.print(line)
  }
}

/** `svc workflows show <workflow>`: the definition as it is now, wherever it comes from. */
export class WorkflowsShow extends SvcCommand {
  static override summary = 'Show the definition of a workflow'
  static override examples = ['<%= config.bin %> <%= command.id %> release']
  static override args = WORKFLOW_ARG
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsShow)
    const { info, definition } = await (await openWorkflows(this)).show(args.workflow, contextOf(this, 'show'))
    if (flags.json) return this.print(JSON.stringify({ workflow: infoRecord(info), definition }))
    const { stringify } = await import('yaml')
    this.note(`from ${info.source}`)
    this.print(stringify(definition, { lineWidth: 120 }).trimEnd())
    for (const line of problemLines(placeOf(info, info.source), info.problems ?? [])) this.note(line)
  }
}

/** `svc workflows graph <workflow>`: on the terminal, or as SVG into a file. */
export class WorkflowsGraph extends SvcCommand {
  static override summary = 'Draw a workflow'
  static override description =
    'Draws a definition with problems as it is; the standard error says how many it has, and `svc workflows validate` shows them.'
  static override examples = ['<%= config.bin %> <%= command.id %> release --svg release.svg']
  static override args = WORKFLOW_ARG
  static override flags = {
    svg: Flags.string({ summary: 'Write SVG into a file; - is the standard output', helpValue: '<file>' }),
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WorkflowsGraph)
    const { definition, info } = await (await openWorkflows(this)).show(args.workflow, contextOf(this, 'graph'))
    const problems = info.problems?.length ?? 0
    if (problems > 0) this.note(`the definition has ${counted(problems, 'fault')}: svc workflows validate ${args.workflow}`)
    const { drawSvg, drawTerminal } = await import('@svc/workflow-lang')
    if (flags.svg === undefined || flags.svg === '-')
      return this.print(flags.svg ? drawSvg(definition) : drawTerminal(definition))
    await writeFile(flags.svg, drawSvg(definition)).catch((error: unknown) => {
      throw lineInvalid(`--svg cannot be written: ${messageOf(error)}`, 'workflows graph <workflow> [--svg <file>]')
    })
    this.note(`drawn to ${flags.svg}`)
  }
}
