import type { Enforced, ProcessLimits } from '@svc/core/contracts'
import { unavailable } from './errors.ts'
import { both, FREE, type Hold, type Kind, type Limits } from './holding.ts'
import type { Machine } from './machine.ts'

/** Processes and threads where nobody says how many. */
const PIDS = 256

/** The limits to hold. Throws SANDBOX_UNAVAILABLE for one that was asked for and cannot be held. */
export function needed({ memoryBytes, pids }: ProcessLimits, machine: Machine): Limits {
  if (memoryBytes !== undefined && !machine.memory) throw unavailable('this machine can hold no limit of memory')
  if (pids !== undefined && !machine.pids) throw unavailable('this machine can hold no limit of processes')
  const most = pids ?? (machine.pids ? PIDS : undefined)
  return { ...(memoryBytes === undefined ? {} : { memory: memoryBytes }), ...(most === undefined ? {} : { pids: most }) }
}

/** Makes what holds them. */
export async function holdLimits(
  limits: Limits,
  machine: Machine,
  isNode: () => Promise<boolean>
): Promise<{ readonly hold: Hold; readonly enforced: Pick<Enforced, Kind> }> {
  const { memory, pids } = limits
  const program = { isNode }
  const enforced = {
    memory: memory === undefined ? null : machine.memory!.name,
    pids: pids === undefined ? null : machine.pids!.name,
  }
  if (machine.memory && machine.memory === machine.pids) return { hold: await machine.memory.hold(limits, program), enforced }
  const first = memory === undefined ? FREE : await machine.memory!.hold({ memory }, program)
  try {
    const second = pids === undefined ? FREE : await machine.pids!.hold({ pids }, program)
    return { hold: both(first, second), enforced }
  } catch (error) {
    await first.release()
    throw error
  }
}
