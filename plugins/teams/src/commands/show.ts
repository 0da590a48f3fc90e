import { JSON_FLAG, oneLine, readLine } from '@svc/command-line'
import { systemUse } from '@svc/core'
import { type Command, type TeamDefinition, type TeamInfo, type TeamMember, Teams } from '@svc/core/contracts'
import { lineOf } from '../errors.ts'
import { USAGE } from './line.ts'

/** `svc teams show <team>`. */
const show: Command = async ({ args, signal, host, print, note }) => {
  const {
    values: { json },
    positionals: words,
  } = readLine(args, USAGE.show, JSON_FLAG, [1, 1])
  const shown = await (await host()).service(Teams).show(words[0]!, systemUse(signal, 'svc teams show'))
  if (json) return print(JSON.stringify(shown))
  for (const line of linesOf(shown)) print(line)
  for (const problem of shown.info.problems ?? []) note(oneLine(lineOf(problem), 300))
}

export default show

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
  const told = Object.entries(facts).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}: ${value === '' ? 'none' : value}`]
  )
  return ['', `${name}: ${oneLine(role, 200)}`, `  ${oneLine(goal, 400)}`, ...told.map(line => `  ${line}`)]
}
