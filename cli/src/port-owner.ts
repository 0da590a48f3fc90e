import { StartFailed, type SvcError } from '@svc/core'
import { findServers } from '@svc/runtime'
import { portOurs } from './errors.ts'
import { problemsOf } from './command/report-error.ts'

/** An error as it is, but for a taken port: who has it may be a server of this very home. */
export async function withPortOwner(error: unknown, home: string): Promise<unknown> {
  const problems = problemsOf(error)
  if (!problems.some(isTaken)) return error
  const servers = await findServers(home).catch(() => [])
  for (const server of servers) server[Symbol.dispose]()
  return new StartFailed(
    problems.map(problem =>
      nameOwner(
        problem,
        servers.map(one => one.info)
      )
    )
  )
}

const isTaken = ({ code }: SvcError) => code === 'PORT_TAKEN'

function nameOwner(problem: SvcError, servers: readonly { readonly pid: number; readonly port: number }[]): SvcError {
  const { host, port } = problem.details
  const owner = isTaken(problem) ? servers.find(one => one.port === port) : undefined
  return owner === undefined ? problem : portOurs(String(host), owner.port, owner.pid, problem.plugin)
}
