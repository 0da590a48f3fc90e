import { allFailed, memberFailed } from '../errors.ts'
import type { Play } from '../play.ts'
import type { Team } from '../team.ts'
import { contributions, prompt, theTask } from '../words.ts'

/** All at once; the lead makes one answer of what they bring, and without a lead it is put together as it is. */
export function* parallel(team: Team, task: string): Play {
  const said = yield team.others.map(({ name }) => ({ member: name, prompt: theTask(task) }))
  if (said.every(({ error }) => error)) throw allFailed(team, said)
  const { lead } = team
  if (!lead)
    return {
      answer: contributions(
        team,
        said.filter(({ error }) => !error)
      ),
    }
  const brought = `# What the members bring\n\n${contributions(team, said)}`
  const [merged] = yield [{ member: lead.name, prompt: prompt(theTask(task), brought, '# Now make one answer of it') }]
  if (merged!.error) throw memberFailed(team, lead.name, merged!.error)
  return { answer: merged!.text }
}
