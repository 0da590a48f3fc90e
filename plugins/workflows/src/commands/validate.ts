import { JSON_FLAG, oneLine, readLine } from '@svc/command-line'
import { readFile, stat } from 'node:fs/promises'
import { shownPath, type Use } from '@svc/core'
import type { Command, WorkflowInfo, WorkflowProblem, Workflows } from '@svc/core/contracts'
import { problemRecord } from '@svc/wire'
import { openWorkflows, useOf } from './ground.ts'
import { USAGE } from './line.ts'

/** `svc workflows validate <name or file>...`: everything that is wrong, each with its line; 1 where something is. */
const validate: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.validate, JSON_FLAG, [1, Number.POSITIVE_INFINITY])
  const workflows = await openWorkflows(call)
  const use = useOf(call, 'validate')
  const found = await Promise.all(positionals.map(source => lookedAt(workflows, source, use)))
  const isGood = found.every(({ problems }) => problems.length === 0)
  if (values.json) call.print(JSON.stringify({ valid: isGood, files: found.map(recordOf) }))
  else for (const line of found.flatMap(linesOf)) call.print(line)
  return isGood ? 0 : 1
}

export default validate

/** What was asked for, with the file it stands in where it has one. */
interface Looked {
  readonly source: string
  readonly place: string
  readonly problems: readonly WorkflowProblem[]
}

/** A file wherever it is, but one of code, which has to be imported; else a workflow by its name or path. */
async function lookedAt(workflows: Workflows, source: string, use: Use): Promise<Looked> {
  const found = CODE.test(source) ? undefined : await stat(source).catch(() => undefined)
  if (found?.isFile()) {
    const problems = await workflows.validate({ text: await readFile(source, 'utf8'), file: source }, use)
    return { source, place: source, problems }
  }
  const { info } = await workflows.show(source, use)
  return { source, place: placeOf(info, source), problems: info.problems ?? [] }
}

const CODE = /\.m?[jt]s$/

/** Where a person finds a workflow; what comes from a plugin is called as it was asked for. */
export const placeOf = ({ file }: WorkflowInfo, otherwise: string) => (file === undefined ? otherwise : shownPath(file))

const recordOf = ({ source, problems }: Looked) => ({ source, problems: problems.map(problemRecord) })

const linesOf = ({ source, place, problems }: Looked) =>
  problems.length === 0 ? [`${source}: nothing is wrong`] : problemLines(place, problems)

/** Each problem as `file:line path message`, its mend below. */
export const problemLines = (source: string, problems: readonly WorkflowProblem[]): string[] =>
  problems.flatMap(({ message, path, line, mend }) => [
    `${source}${line === undefined ? '' : `:${line}`} ${path === '' ? '' : `${path} `}${oneLine(message, 400)}`,
    ...(mend === undefined ? [] : [`  ${oneLine(mend, 400)}`]),
  ])
