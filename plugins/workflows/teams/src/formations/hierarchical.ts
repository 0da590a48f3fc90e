import { memberFailed } from '../errors.ts'
import type { Play, Said } from '../play.ts'
import type { Member, Team } from '../team.ts'
import { contributions, prompt, theTask } from '../words.ts'

interface Assignment {
  readonly member: string
  readonly task: string
}
interface Plan {
  readonly assignments: readonly Assignment[]
  readonly done: boolean
  readonly answer: string
}

/** So many assignments of one round are carried out. */
const MOST = 16
const text = (description: string) => ({ type: 'string', description })

// a name that there is not is told back: a schema that forbids it would fail the lead instead
const ASSIGNMENT = {
  type: 'object',
  properties: { member: text('The name of a member'), task: text('All that the member has to know: it sees nothing else') },
  required: ['member', 'task'],
  additionalProperties: false,
}
const PLAN = {
  type: 'object',
  properties: {
    assignments: {
      type: 'array',
      items: ASSIGNMENT,
      description: `What members do next, all at once, at most ${MOST}; empty when it is done`,
    },
    done: { type: 'boolean', description: 'Whether you can give the answer now' },
    answer: text('The answer to the task; empty while it is not done'),
  },
  required: ['assignments', 'done', 'answer'],
  additionalProperties: false,
}
const ANSWER = {
  type: 'object',
  properties: { answer: text('The answer to the task') },
  required: ['answer'],
  additionalProperties: false,
}

/** The lead gives parts of the task to members and sees what they bring, in so many rounds; then it answers. */
export function* hierarchical(team: Team, task: string): Play {
  const lead = team.lead!
  const past: string[] = []
  for (let round = 1; round <= team.rounds; round++) {
    const [said] = yield [{ member: lead.name, prompt: leading(team, task, past, round), schema: PLAN }]
    const plan = dataOf<Plan>(team, lead, said!)
    if (plan.done) return { answer: plan.answer, rounds: round }
    const { known, refused } = sorted(team, plan.assignments)
    const brought: readonly Said[] = known.length === 0 ? [] : yield known.map(one => ({ member: one.member, prompt: one.task }))
    past.push(prompt(`# What round ${round} has brought`, contributions(team, brought), refused))
  }
  const [said] = yield [
    { member: lead.name, prompt: prompt(theTask(task), ...past, '# The rounds are over: now answer'), schema: ANSWER },
  ]
  return { answer: dataOf<Plan>(team, lead, said!).answer, rounds: team.rounds }
}

function leading({ others, rounds }: Team, task: string, past: readonly string[], round: number): string {
  const members = others.map(({ name, role, goal }) => `- ${name}: ${role}. ${goal}`).join('\n')
  const now = `# Now\n\nThis is round ${round} of ${rounds}. Give out what is to be done next, or answer.`
  return prompt(theTask(task), `# The members\n\n${members}`, ...past, now)
}

function dataOf<T>(team: Team, lead: Member, { data, error }: Said): T {
  if (error) throw memberFailed(team, lead.name, error)
  return data as T
}

/** What can be given to a member, and a word on all else. */
function sorted(
  { others }: Team,
  assignments: readonly Assignment[]
): { readonly known: readonly Assignment[]; readonly refused: string } {
  const names = others.map(({ name }) => name)
  const known = assignments.filter(({ member }) => names.includes(member))
  const strange = assignments.filter(({ member }) => !names.includes(member)).map(({ member }) => `"${member.slice(0, 60)}"`)
  const words = [
    assignments.length === 0 && 'You gave nothing to do, and no answer.',
    strange.length > 0 &&
      `There is no member ${[...new Set(strange)].join(', ')}: nobody did that. The members are ${names.join(', ')}.`,
    known.length > MOST && `Only the first ${MOST} of ${known.length} assignments were carried out.`,
  ]
  return { known: known.slice(0, MOST), refused: prompt(...words) }
}
