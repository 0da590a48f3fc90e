import { memberFailed } from '../errors.ts'
import type { Play } from '../play.ts'
import type { Team } from '../team.ts'
import { prompt, theTask } from '../words.ts'

/** What a critic says of a draft. */
interface Verdict {
  readonly approved: boolean
  readonly reasons: readonly string[]
}

const VERDICT = {
  type: 'object',
  properties: {
    approved: { type: 'boolean', description: 'Whether it is good as it is' },
    reasons: {
      type: 'array',
      items: { type: 'string' },
      description: 'What is to be changed, and why; where it is approved, why',
    },
  },
  required: ['approved', 'reasons'],
  additionalProperties: false,
}

/** One writes, one judges, until it is approved or the rounds are over; which of the two is told. */
export function* reflection(team: Team, task: string): Play {
  const [writer, critic] = [team.others[0]!.name, team.lead!.name]
  let [draft, verdict]: [string, Verdict] = ['', { approved: false, reasons: [] }]
  for (let round = 1; ; round++) {
    const [written] = yield [{ member: writer, prompt: writing(task, draft, verdict) }]
    if (written!.error) throw memberFailed(team, writer, written!.error)
    draft = written!.text
    const [judged] = yield [
      { member: critic, prompt: prompt(theTask(task), `# The draft\n\n${draft}`, '# Now judge it'), schema: VERDICT },
    ]
    if (judged!.error) throw memberFailed(team, critic, judged!.error)
    verdict = judged!.data as unknown as Verdict
    const { approved, reasons } = verdict
    if (approved || round === team.rounds) return { answer: draft, approved, reasons, rounds: round }
  }
}

function writing(task: string, draft: string, { reasons }: Verdict): string {
  if (draft === '') return theTask(task)
  const asked = `# What the critic says of it\n\n${reasons.map(reason => `- ${reason}`).join('\n')}`
  return prompt(theTask(task), `# Your last draft\n\n${draft}`, asked, '# Now write it anew')
}
