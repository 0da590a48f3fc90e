import { memberFailed } from '../errors.ts'
import type { Play } from '../play.ts'
import type { Team } from '../team.ts'

/** Stages: the first is given the task, each other only what the one before has made. What the last makes is the answer. */
export function* pipeline(team: Team, task: string): Play {
  let made = task
  for (const { name } of team.members) {
    const [said] = yield [{ member: name, prompt: made }]
    if (said!.error) throw memberFailed(team, name, said!.error)
    made = said!.text
  }
  return { answer: made }
}
