import { oneLine } from '@svc/plugin-kit'
import { readFile, stat } from 'node:fs/promises'
import { shownPath, type CallContext } from '@svc/core'
import type { WorkflowInfo, WorkflowProblem, Workflows } from '@svc/core/contracts'
import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { problemRecord } from '@svc/api-types'
import { openWorkflows, contextOf } from './ground.ts'

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
export const placeOf = ({ file }: WorkflowInfo, otherwise: string) => (file === undefined ? otherwise : shownPath(file))

const recordOf = ({ source, problems }: Looked) => ({ source, problems: problems.map(problemRecord) })

const linesOf = ({ source, place, problems }: Looked) =>
  problems.length === 0 ? [`${source}: nothing is wrong`] : problemLines(place, problems)

/** Each problem as `file:line path message`, its hint below. */
export const problemLines = (source: string, problems: readonly WorkflowProblem[]): string[] =>
  problems.flatMap(({ message, path, line, hint }) => [
    `${source}${line === undefined ? '' : `:${line}`} ${path === '' ? '' : `${path} `}${oneLine(message, 400)}`,
    ...(hint === undefined ? [] : [`  ${oneLine(hint, 400)}`]),
  ])
