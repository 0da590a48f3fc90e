import { allFailed } from '../errors.ts'
import type { Ask, Ending, Play, Said } from '../play.ts'
import type { Team } from '../team.ts'
import { contributions, prompt, theTask } from '../words.ts'

interface Vote {
  readonly vote: string
  readonly reason: string
}

/** What a round has come to. */
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
 * Each proposes, then all vote; where too few agree they propose again, having seen the proposals, votes and reasons. Who has failed takes no part any more,
 * and counts among those who do not agree.
 */
export function* consensus(team: Team, task: string): Play {
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

function proposing(team: Team, present: readonly string[], task: string, before: Round | undefined): Ask[] {
  if (!before) return present.map(member => ({ member, prompt: theTask(task) }))
  const last = `# The proposals\n\n${contributions(team, before.proposals)}`
  const votes = `# The votes, which did not agree\n\n${before.votes.map(lineOf).join('\n')}`
  return present.map(member => ({
    member,
    prompt: prompt(theTask(task), last, votes, '# Now propose again, the same or another answer'),
  }))
}

function voting(team: Team, proposals: readonly Said[], task: string): Ask[] {
  const names = proposals.map(({ member }) => member)
  const text = prompt(theTask(task), `# The proposals\n\n${contributions(team, proposals)}`, '# Now vote for one of them')
  return names.map(member => ({ member, prompt: text, schema: voteFor(names), judges: true }))
}

const voteOf = ({ data }: Said) => data as unknown as Vote
const lineOf = (said: Said) => `- ${said.member} for ${voteOf(said).vote}: ${voteOf(said).reason}`

function endingOf({ needed }: Team, { proposals, votes }: Round, rounds: number): Ending {
  const cast = Object.fromEntries(votes.map(said => [said.member, voteOf(said).vote]))
  const winner = proposals.find(({ member }) => Object.values(cast).filter(vote => vote === member).length >= needed)
  if (winner) return { answer: winner.text, agreed: true, rounds, votes: cast }
  const positions = Object.fromEntries(proposals.map(({ member, text }) => [member, text]))
  return { answer: null, agreed: false, rounds, votes: cast, positions }
}
