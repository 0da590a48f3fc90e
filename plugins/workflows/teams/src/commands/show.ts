import { oneLine } from '@svc/plugin-kit'
import { systemContext } from '@svc/core'
import { type TeamDefinition, type TeamInfo, type TeamMember, Teams } from '@svc/core/contracts'
import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { lineOf } from '../errors.ts'

/** `svc teams show <team>`. */
export class TeamsShow extends SvcCommand {
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
  const told = Object.entries(facts).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}: ${value === '' ? 'none' : value}`]
  )
  return ['', `${name}: ${oneLine(role, 200)}`, `  ${oneLine(goal, 400)}`, ...told.map(line => `  ${line}`)]
}
