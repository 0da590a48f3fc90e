import type { QueuedRun, Space } from '@svc/core/contracts'

export const QUEUE = 'run_queue'

/** A queue entry. */
export interface QueueEntry {
  /** `ready`: free; `held`: a process executes it; `asleep`: it waits for its time or a wake-up. */
  readonly state: 'ready' | 'held' | 'asleep'
  /** Time of the next check, in Unix milliseconds. */
  readonly due: number
  readonly group?: QueuedRun['group']
  readonly affinity?: QueuedRun['affinity']
  readonly holder?: string
  /** Whether a notice came while it was held. */
  readonly woken?: boolean
}

export const SPACE: Space = {
  name: 'run_queue',
  version: 1,
  collections: { [QUEUE]: { indexes: { by_state: ['state', 'due'] } } },
}
