import { memberFailed } from '../errors.ts'
import type { Play, Said } from '../play.ts'
import type { Team } from '../team.ts'
import { contributions, prompt, theTask } from '../words.ts'

/** One after the other: each sees the task and what those before have said. The last word is the answer. */
export function* sequential(team: Team, task: string): Play {
  const before: Said[] = []
  for (const { name } of team.members) {
    const past = before.length > 0 && `# What the members before you have said\n\n${contributions(team, before)}`
    const [said] = yield [{ member: name, prompt: prompt(theTask(task), past, before.length > 0 && '# Now do your part') }]
    if (said!.error) throw memberFailed(team, said!.member, said!.error)
    before.push(said!)
  }
  return { answer: before.at(-1)!.text }
}
