import type { Json } from '@svc/core/contracts'
import type { Said } from './play.ts'
import type { Member, Team } from './team.ts'

/** A task as a model reads it. */
export const taskText = (task: Json | undefined): string =>
  typeof task === 'string' ? task : JSON.stringify(task ?? null, null, 2)

const PLACE: Readonly<Record<Team['formation'], string>> = {
  sequential:
    'The members work one after the other. You see what those before you have said: build on it, and do not do it again.',
  parallel: 'The members work on the same task at once, without seeing each other.',
  hierarchical: 'You are given one part of a larger task by the lead of the team: do that part, and tell what came of it.',
  pipeline:
    'You are one stage: you are given what the stage before has made, and what you answer is given to the next. Answer with your result only.',
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

/** What a member is told about itself. */
export function systemOf(team: Team, member: Member): string {
  const place = (member === team.lead && LEAD[team.formation]) || PLACE[team.formation]
  return `You are ${member.role}, the member "${member.name}" of the team "${team.name}".\nYour goal: ${member.goal}\n${place}`
}

/** Parts of a prompt, with an empty line between. */
export const prompt = (...parts: readonly (string | false | undefined)[]): string => parts.filter(Boolean).join('\n\n')

export const theTask = (task: string) => `# Task\n\n${task}`

/** What members said, each under its name. */
export const contributions = (team: Team, said: readonly Said[]): string => said.map(one => contribution(team, one)).join('\n\n')

function contribution({ members }: Team, { member, text, error }: Said): string {
  const { role = '' } = members.find(({ name }) => name === member) ?? {}
  return `## ${member} (${role})\n\n${error ? `(has failed: ${error.message})` : text}`
}
