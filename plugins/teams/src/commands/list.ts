import { JSON_FLAG, oneLine, readLine, table } from '@svc/command-line'
import { systemUse } from '@svc/core'
import { type Command, type TeamInfo, Teams } from '@svc/core/contracts'
import { lineOf } from '../errors.ts'
import { USAGE } from './line.ts'

const HEAD = ['TEAM', 'FORMATION', 'MEMBERS', 'FROM', 'DESCRIPTION']

/** `svc teams list`: all teams, those of files that are broken too. */
const list: Command = async ({ args, signal, host, print, note }) => {
  const { json } = readLine(args, USAGE.list, JSON_FLAG, [0, 0]).values
  const teams = await (await host()).service(Teams).list(systemUse(signal, 'svc teams list'))
  if (json) return print(JSON.stringify({ teams }))
  if (teams.length === 0) return note('there are no teams; write one into a folder of teams.roots')
  for (const line of table([HEAD, ...teams.map(cells)])) print(line)
  for (const { source, problems = [] } of teams)
    for (const problem of problems) note(`${source}: ${oneLine(lineOf(problem), 300)}`)
}

export default list

const cells = ({ name, formation, members, source, description = '', problems }: TeamInfo): string[] => [
  name,
  formation ?? '-',
  members.join(' '),
  source,
  problems ? 'cannot work, see below' : oneLine(description),
]
