import { oneLine, table } from '@svc/plugin-kit'
import { systemContext } from '@svc/core'
import { type TeamInfo, Teams } from '@svc/core/contracts'
import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { lineOf } from '../errors.ts'

const HEAD = ['TEAM', 'FORMATION', 'MEMBERS', 'FROM', 'DESCRIPTION']

/** `svc teams list`: all teams, those of files that are broken too. */
export class TeamsList extends SvcCommand {
  static override summary = 'List the teams'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(TeamsList)
    const teams = await (await this.host()).service(Teams).list(systemContext(this.signal, 'svc teams list'))
    if (flags.json) return this.print(JSON.stringify({ teams }))
    if (teams.length === 0) return this.note('there are no teams; write one into a folder of teams.roots')
    for (const line of table([HEAD, ...teams.map(cells)])) this.print(line)
    for (const { source, problems = [] } of teams)
      for (const problem of problems) this.note(`${source}: ${oneLine(lineOf(problem), 300)}`)
  }
}

const cells = ({ name, formation, members, source, description = '', problems }: TeamInfo): string[] => [
  name,
  formation ?? '-',
  members.join(' '),
  source,
  problems ? 'cannot work, see below' : oneLine(description),
]
