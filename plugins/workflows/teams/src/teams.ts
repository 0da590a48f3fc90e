import type { CallContext } from '@svc/core'
import type { Json, Run, TeamDefinition, TeamInfo, Teams, Workflows } from '@svc/core/contracts'
import { bodyOf, workflowOf } from './body.ts'
import { taskInvalid } from './errors.ts'
import type { Library } from './library.ts'

/** The same as `Teams.start`, for a model: what it gives to a team is not given to another by that one's members. */
export type Delegation = (team: string, task: string, ctx: CallContext) => Promise<Run>

export function createTeams(library: Library, workflows: Workflows): { readonly service: Teams; readonly delegate: Delegation } {
  const start = async (team: string, input: { readonly task: Json; readonly delegated?: true }, ctx: CallContext) => {
    const { definition } = await library.ready(team)
    const { idempotencyKey } = ctx
    return workflows.start({ workflow: workflowOf(definition), input, ...(idempotencyKey ? { idempotencyKey } : {}) }, ctx)
  }
  const service: Teams = {
    list: async () => (await library.all()).map(infoOf),
    async show(team) {
      const known = await library.find(team)
      return { info: infoOf(known), definition: known.definition }
    },
    async body(team, task) {
      const { definition } = await library.ready(team)
      return bodyOf(definition, checked(task))
    },
    start: async (team, task, ctx) => start(team, { task: checked(task) }, ctx),
  }
  return { service, delegate: async (team, task, ctx) => start(team, { task: checked(task), delegated: true }, ctx) }
}

/** Throws INVALID_VALUE for a task that says nothing. */
function checked(task: Json): Json {
  if (task === null || (typeof task === 'string' && task.trim() === '')) throw taskInvalid()
  return task
}

function infoOf({ name, source, problems, ...rest }: Awaited<ReturnType<Library['all']>>[number]): TeamInfo {
  const { description, formation, members } = (rest as { readonly definition?: Partial<TeamDefinition> }).definition ?? {}
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(formation === undefined ? {} : { formation }),
    source,
    members: Object.keys(members ?? {}),
    ...(problems.length > 0 ? { problems } : {}),
  }
}
