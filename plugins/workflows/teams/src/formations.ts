import type { Json } from '@svc/core/contracts'
import { allFailed, memberFailed } from './errors.ts'
import type { MemberPrompt, Ending, Member, FormationScript, Said, Team } from './team.ts'

interface Assignment {
  readonly member: string
  readonly task: string
}
interface Plan {
  readonly assignments: readonly Assignment[]
  readonly done: boolean
  readonly answer: string
}

/** Maximum number of assignments in a round. */
const MOST = 16
const textProperty = (description: string) => ({ type: 'string', description })

// an unknown name is reported to the lead, because a schema error would fail it
const ASSIGNMENT = {
  type: 'object',
  properties: {
    member: textProperty('The name of a member'),
    task: textProperty('All that the member has to know: it sees nothing else'),
  },
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
    answer: textProperty('The answer to the task; empty while it is not done'),
  },
  required: ['assignments', 'done', 'answer'],
  additionalProperties: false,
}
const ANSWER = {
  type: 'object',
  properties: { answer: textProperty('The answer to the task') },
  required: ['answer'],
  additionalProperties: false,
}

/** The lead gives parts of the task to members and sees their replies, in several rounds. Then it answers. */
function* hierarchical(team: Team, task: string): FormationScript {
  const lead = team.lead!
  const past: string[] = []
  for (let round = 1; round <= team.rounds; round++) {
    const [said] = yield [{ member: lead.name, prompt: leading(team, task, past, round), schema: PLAN }]
    const plan = dataOf<Plan>(team, lead, said!)
    if (plan.done) return { answer: plan.answer, rounds: round }
    const { known, refused } = sorted(team, plan.assignments)
    const brought: readonly Said[] =
      known.length === 0 ? [] : yield known.map(item => ({ member: item.member, prompt: item.task }))
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

/** Sorts assignments into valid ones and a report on the others. */
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
      `There is no member ${[...new Set(strange)].join(', ')}, so that work was not done. The members are ${names.join(', ')}.`,
    known.length > MOST && `Only the first ${MOST} of ${known.length} assignments were carried out.`,
  ]
  return { known: known.slice(0, MOST), refused: prompt(...words) }
}

interface Vote {
  readonly vote: string
  readonly reason: string
}

/** Proposals and votes of a round. */
interface Round {
  readonly proposals: readonly Said[]
  readonly votes: readonly Said[]
}

const voteFor = (names: readonly string[]) => ({
  type: 'object',
  properties: {
    vote: { enum: names, description: 'The member whose proposal is right' },
    reason: { type: 'string', description: 'Why' },
  },
  required: ['vote', 'reason'],
  additionalProperties: false,
})

/**
 * All members propose, then vote. Without enough votes, they propose again and see the earlier proposals, votes and reasons. A
 * member that fails takes no further part and counts as not agreeing.
 */
function* consensus(team: Team, task: string): FormationScript {
  let present: readonly string[] = team.members.map(({ name }) => name)
  let before: Round | undefined
  for (let round = 1; ; round++) {
    const proposed: readonly Said[] = yield proposing(team, present, task, before)
    const proposals = proposed.filter(({ error }) => !error)
    if (proposals.length === 0) throw allFailed(team, proposed)
    const cast: readonly Said[] = yield voting(team, proposals, task)
    const votes = cast.filter(({ error }) => !error)
    present = votes.map(({ member }) => member)
    before = { proposals, votes }
    const ending = endingOf(team, before, round)
    if (ending.agreed || round === team.rounds || present.length < team.needed) return ending
  }
}

function proposing(team: Team, present: readonly string[], task: string, before: Round | undefined): MemberPrompt[] {
  if (!before) return present.map(member => ({ member, prompt: theTask(task) }))
  const last = `# The proposals\n\n${contributions(team, before.proposals)}`
  const votes = `# The votes, which did not agree\n\n${before.votes.map(voteLine).join('\n')}`
  return present.map(member => ({
    member,
    prompt: prompt(theTask(task), last, votes, '# Now propose again, the same or another answer'),
  }))
}

function voting(team: Team, proposals: readonly Said[], task: string): MemberPrompt[] {
  const names = proposals.map(({ member }) => member)
  const text = prompt(theTask(task), `# The proposals\n\n${contributions(team, proposals)}`, '# Now vote for one of them')
  return names.map(member => ({ member, prompt: text, schema: voteFor(names), judges: true }))
}

const voteOf = ({ data }: Said) => data as unknown as Vote
const voteLine = (said: Said) => `- ${said.member} for ${voteOf(said).vote}: ${voteOf(said).reason}`

function endingOf({ needed }: Team, { proposals, votes }: Round, rounds: number): Ending {
  const cast = Object.fromEntries(votes.map(said => [said.member, voteOf(said).vote]))
  const winner = proposals.find(({ member }) => Object.values(cast).filter(vote => vote === member).length >= needed)
  if (winner) return { answer: winner.text, agreed: true, rounds, votes: cast }
  const positions = Object.fromEntries(proposals.map(({ member, text }) => [member, text]))
  return { answer: null, agreed: false, rounds, votes: cast, positions }
}

/** The verdict of a critic. */
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

/** A writer writes and a critic judges until the draft is approved or the rounds are over. The result says which. */
function* reflection(team: Team, task: string): FormationScript {
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

/** Members work one after the other. Each sees the task and the earlier replies. The last reply is the answer. */
function* sequential(team: Team, task: string): FormationScript {
  const before: Said[] = []
  for (const { name } of team.members) {
    const past = before.length > 0 && `# What the members before you have said\n\n${contributions(team, before)}`
    const [said] = yield [{ member: name, prompt: prompt(theTask(task), past, before.length > 0 && '# Now do your part') }]
    if (said!.error) throw memberFailed(team, said!.member, said!.error)
    before.push(said!)
  }
  return { answer: before.at(-1)!.text }
}

/** Stages: the first gets the task, each other the output of the previous stage. The last output is the answer. */
function* pipeline(team: Team, task: string): FormationScript {
  let made = task
  for (const { name } of team.members) {
    const [said] = yield [{ member: name, prompt: made }]
    if (said!.error) throw memberFailed(team, name, said!.error)
    made = said!.text
  }
  return { answer: made }
}

/** All members work at once. The lead merges their replies; without a lead, the replies are concatenated. */
function* parallel(team: Team, task: string): FormationScript {
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

/** How a team of each formation works. */
export const FORMATIONS: Readonly<Record<Team['formation'], (team: Team, task: string) => FormationScript>> = {
  sequential,
  parallel,
  hierarchical,
  pipeline,
  consensus,
  reflection,
}

/** Formats a task for a model. */
export const taskText = (task: Json | undefined): string =>
  typeof task === 'string' ? task : JSON.stringify(task ?? null, null, 2)

const PLACE: Readonly<Record<Team['formation'], string>> = {
  sequential:
    'The members work one after the other. You see what those before you have said: build on it, and do not do it again.',
  parallel: 'The members work on the same task at once, without seeing each other.',
  hierarchical: 'You are given one part of a larger task by the lead of the team: do that part, and reportStep what came of it.',
  pipeline:
    'You are one stage. You receive the result of the previous stage, and your answer goes to the next stage. Answer with your result only.',
  consensus:
    'Each member proposes an answer of its own, and then all vote. Say what you hold to be right, and give way only to reasons.',
  reflection: 'You write, and a critic judges what you have written. Answer with the whole text each time.',
}

const LEAD: Partial<Record<Team['formation'], string>> = {
  parallel: 'You lead the team: the others have worked on the same task at once, and you make one answer of what they bring.',
  hierarchical:
    'You lead the team: you cut the task into parts, give them to members, look at what they bring, and answer in the end.',
  reflection:
    'You are the critic: you judge what the writer brings by the task and by your goal. Approve only what needs no change.',
}

/** The system prompt of a member. */
export function systemOf(team: Team, member: Member): string {
  const place = (member === team.lead && LEAD[team.formation]) || PLACE[team.formation]
  return `You are ${member.role}, the member "${member.name}" of the team "${team.name}".\nYour goal: ${member.goal}\n${place}`
}

/** Joins parts of a prompt with empty lines. */
const prompt = (...parts: readonly (string | false | undefined)[]): string => parts.filter(Boolean).join('\n\n')

const theTask = (task: string) => `# Task\n\n${task}`

/** Formats the replies of members, each under its name. */
const contributions = (team: Team, said: readonly Said[]): string => said.map(item => contribution(team, item)).join('\n\n')

function contribution({ members }: Team, { member, text, error }: Said): string {
  const { role = '' } = members.find(({ name }) => name === member) ?? {}
  return `## ${member} (${role})\n\n${error ? `(failed: ${error.message})` : text}`
}
