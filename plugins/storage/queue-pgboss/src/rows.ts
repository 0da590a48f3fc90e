import { hash } from 'node:crypto'
import type { QueuedRun } from '@svc/core/contracts'
import { checkQueuedRun } from '@svc/storage-kit/run-leases'
import type { JobInsert } from './boss.ts'

/** What a job of pg-boss says about its run. */
export interface RunData extends Pick<QueuedRun, 'id' | 'group' | 'affinity'> {}

/** An attempt at a job: pg-boss ignores calls about a former one. */
export interface Attempt {
  readonly id: string
  readonly retryCount: number
}

export type Job = Attempt & { readonly data: unknown }
export type NewJob = JobInsert<RunData> & { readonly id: string; readonly data: RunData; readonly singletonKey: string }

/** Text that an operator can read in the tables, and that an entry of a B-tree can hold. */
const PLAIN = /^[\w.:@-]{1,200}$/
/** The priority of jobs that any node may run. Those of one node have a priority of their own, from 1. */
export const ANY_NODE = 0
/** Hexadecimal digits of the priority of a node. Two nodes can have the same, so a worker also checks the name. */
const DIGITS = 7
/** Runs that only a wake-up makes due. */
const NOT_DUE = new Date('9999-01-01T00:00:00Z')
const LONGEST_S = 1e9
/** Limits above this one are the same. */
const MOST_LIMIT = 1_000_000

export const keyOf = (name: string): string => (PLAIN.test(name) ? name : `~${hash('sha256', name)}`)

export const priorityOf = (node: string | undefined): number =>
  node === undefined ? ANY_NODE : 1 + Number.parseInt(hash('sha256', node).slice(0, DIGITS), 16)

/** The tiers of pg-boss are the limits of groups. */
export const tierOf = (limit: number): number => Math.min(limit, MOST_LIMIT)
const groupIn = ({ name, limit }: NonNullable<QueuedRun['group']>) => ({ id: keyOf(name), tier: String(tierOf(limit)) })

/** A group of its own: a job of pg-boss cannot leave its group. */
export const noGroup = (key: string) => ({ id: `run ${key}` })

/** When a job is due, relative to the clock of the database: that of this machine can differ. */
function startAfterOf(due: number | null | undefined): number | Date {
  if (due === null || due === undefined) return NOT_DUE
  const ms = Math.max(0, Math.ceil(due - Date.now()))
  return ms / 1_000 > LONGEST_S ? NOT_DUE : ms / 1_000
}

/** Throws STORE_INVALID. */
export function jobOf(run: QueuedRun): NewJob {
  checkQueuedRun(run)
  const { id, due, group, affinity } = run
  return jobWith({ id, ...(group ? { group } : {}), ...(affinity === undefined ? {} : { affinity }) }, due)
}

export const jobWith = (data: RunData, due: number | null | undefined): NewJob => ({
  id: crypto.randomUUID(),
  data,
  singletonKey: keyOf(data.id),
  startAfter: startAfterOf(due),
  priority: priorityOf(data.affinity),
  ...(data.group ? { group: groupIn(data.group) } : {}),
})

/** The run of a job; undefined if svc has not written it. */
export function runIn(data: unknown): RunData | undefined {
  const { id, group, affinity } = Object(data) as { id?: unknown; group?: unknown; affinity?: unknown }
  const { name, limit } = Object(group) as { name?: unknown; limit?: unknown }
  if (typeof id !== 'string' || id === '') return undefined
  if (affinity !== undefined && typeof affinity !== 'string') return undefined
  if (group !== undefined && !(typeof name === 'string' && Number.isSafeInteger(limit) && (limit as number) >= 1))
    return undefined
  return data as RunData
}
