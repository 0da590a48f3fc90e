import { JSON_FLAG, oneLine, readLine } from '@svc/command-line'
import { readFile, stat } from 'node:fs/promises'
import type { Use } from '@svc/core'
import type { Command, WorkflowProblem, Workflows } from '@svc/core/contracts'
import { problemRecord } from '@svc/wire'
import { openWorkflows, useOf } from './ground.ts'
import { USAGE } from './line.ts'

/** `svc workflows validate <name or file>...`: everything that is wrong, each with its line; 1 where something is. */
const validate: Command = async call => {
  const { values, positionals } = readLine(call.args, USAGE.validate, JSON_FLAG, [1, Number.POSITIVE_INFINITY])
  const workflows = await openWorkflows(call)
  const use = useOf(call, 'validate')
  const found = await Promise.all(
    positionals.map(async source => ({ source, problems: await problemsIn(workflows, source, use) }))
  )
  const isGood = found.every(({ problems }) => problems.length === 0)
  if (values.json)
    call.print(
      JSON.stringify({ valid: isGood, files: found.map(one => ({ ...one, problems: one.problems.map(problemRecord) })) })
    )
  else for (const { source, problems } of found) for (const line of linesOf(source, problems)) call.print(line)
  return isGood ? 0 : 1
}

export default validate

/** A file wherever it is, but one of code, which has to be imported; else a workflow by its name or path. */
async function problemsIn(workflows: Workflows, source: string, use: Use): Promise<readonly WorkflowProblem[]> {
  const found = CODE.test(source) ? undefined : await stat(source).catch(() => undefined)
  if (found?.isFile()) return workflows.validate({ text: await readFile(source, 'utf8'), file: source }, use)
  return (await workflows.show(source, use)).info.problems ?? []
}

const CODE = /\.m?[jt]s$/

const linesOf = (source: string, problems: readonly WorkflowProblem[]) =>
  problems.length === 0 ? [`${source}: nothing is wrong`] : problemLines(source, problems)

/** Each problem as `file:line path message`, its mend below. */
export const problemLines = (source: string, problems: readonly WorkflowProblem[]): string[] =>
  problems.flatMap(({ message, path, line, mend }) => [
    `${source}${line === undefined ? '' : `:${line}`} ${path === '' ? '' : `${path} `}${oneLine(message, 400)}`,
    ...(mend === undefined ? [] : [`  ${oneLine(mend, 400)}`]),
  ])
