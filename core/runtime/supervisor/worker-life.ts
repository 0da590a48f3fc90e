import type { RunningHost } from '@svc/core'
import type { DrainRequest, WorkerLink } from './worker-link.ts'

/** The end of a worker, which the supervisor asks for. */
interface WorkerLife {
  /** Aborts when the worker should end before its host has started. */
  readonly starting: AbortSignal
  /** Aborts when the worker begins to drain. */
  readonly draining: AbortSignal
  started(host: RunningHost): void
  /** Resolves when the drain has ended, if it has begun. */
  ended(): Promise<void>
}

/** Follows what the supervisor asks. `drained` runs after the host has closed. */
export function createWorkerLife(link: Pick<WorkerLink, 'onLeave' | 'onDrain'>, drained: () => Promise<void>): WorkerLife {
  const [starting, draining] = [new AbortController(), new AbortController()]
  let running: RunningHost | undefined
  let isLeaving = false
  let ending: Promise<void> | undefined
  link.onLeave(() => {
    isLeaving = true
    running?.leave()
  })
  const drain = async (request: DrainRequest) => {
    draining.abort()
    if (!running) return starting.abort(new Error('the worker was stopped while it started'))
    const host = running
    await host.close(request).catch((error: unknown) => host.log.error({ err: error }, 'the host did not close cleanly'))
    await drained()
  }
  link.onDrain(request => (ending = drain(request)))
  return {
    starting: starting.signal,
    draining: draining.signal,
    started(host) {
      running = host
      if (isLeaving) host.leave()
    },
    ended: async () => ending,
  }
}
