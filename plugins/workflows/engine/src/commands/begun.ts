import type { CommandContext, Run, Workflows } from '@svc/core/contracts'
import { runReply } from '@svc/api-types'
import { follow } from './follow.ts'

interface Told {
  readonly detach: boolean
  readonly json: boolean
}

/** A run that this command has begun: it is followed to its end, or only told where it was left to a server. Answers the exit code. */
export async function tellBegun(call: CommandContext, workflows: Workflows, begun: Run, { detach, json }: Told): Promise<number> {
  if (detach) {
    call.print(json ? JSON.stringify(runReply(begun)) : begun.id)
    return 0
  }
  call.note(`run ${begun.id}`)
  return follow(call, workflows, begun.id, { json })
}

/** How a run is begun: left to a server, or worked on here. */
export const howOf = ({ detach }: Pick<Told, 'detach'>): { readonly detached?: true } => (detach ? { detached: true } : {})
