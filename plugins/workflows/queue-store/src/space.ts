import type { QueuedRun, Space } from '@svc/core/contracts'

export const QUEUE = 'run_queue'
export const RUN_LEASE = 'run/'
/** One of the places of a group. */
export const slotLease = (group: string, at: number) => `run-place/${group}/${at}`

/** The place of a run in the queue. */
export interface Place {
  /** `ready`: nobody has it; `held`: somebody works on it; `asleep`: it waits for its time, or to be woken. */
  readonly state: 'ready' | 'held' | 'asleep'
  /** Unix milliseconds from which on it is looked at. */
  readonly due: number
  readonly group?: QueuedRun['group']
  readonly holder?: string
  /** News came while it was held. */
  readonly woken?: boolean
}

export const SPACE: Space = {
  name: 'run_queue',
  version: 1,
  collections: { [QUEUE]: { indexes: { by_state: ['state', 'due'] } } },
}
