import { svcError } from '@svc/core'

export const workerEnded = (how: string, plugin?: string) =>
  plugin === undefined
    ? svcError('WORKER_DIED', `the worker ended before it was ready (${how})`, {
        hint: 'Read its last log lines for the reason',
      })
    : svcError('WORKER_DIED', `the worker ended before it was ready (${how}), while it handled a message of ${plugin}`, {
        details: { plugin },
        hint: `Disable or remove the plugin: svc plugins disable ${plugin}`,
      })

export const workerShortLived = (ms: number) =>
  svcError('WORKER_DIED', `the new worker was ready and ended within ${ms} ms`, {
    hint: 'Read its last log lines. A plugin can have thrown an uncaught error after its setup',
  })

export const workerSlow = (ms: number) =>
  svcError('WORKER_TIMEOUT', `the worker was not ready within ${ms} ms`, {
    details: { ms },
    hint: 'Read the last log lines of the worker to see which plugin it waited for',
  })

export const workerBlocked = (ms: number) =>
  svcError('WORKER_BLOCKED', `the starting worker did not respond for ${ms} ms: its event loop is blocked`, {
    details: { ms },
    hint: 'Find the plugin whose module or setup blocks. Fix it, or run it with isolation: process, which stops only that plugin',
  })

export const crashLoop = (deaths: number, how: string) =>
  svcError('CRASH_LOOP', `${deaths} workers in a row crashed soon after their start, the last one with ${how}`, {
    details: { deaths, how },
    hint: 'Read the reason in the log above. Fix the configuration or the plugin, then start the server again',
  })

export const notRunning = (state: string) =>
  svcError('NOT_RUNNING', `the server is ${state} and cannot reload`, {
    details: { state },
    hint: 'Start it with svc serve',
  })

export const noSupervisor = () =>
  svcError('NO_SUPERVISOR', 'this process was not forked by a supervisor', { hint: 'Start it with svc serve' })

export const listenLate = (port: number) =>
  svcError('LISTEN_LATE', `a plugin requested port ${port} after the worker was ready`, {
    details: { port },
    hint: 'Open the port in a tap of Host.hooks.ready',
  })

export const broadcastTimeout = (workers: readonly string[], topic: string, ms: number) =>
  svcError('UNAVAILABLE', `${workers.join(', ')} did not handle the message "${topic}" within ${ms} ms`, {
    details: { workers, topic, retryable: true },
    hint: 'Wait: the change is saved, and the busy worker applies it when it is free. If it stays busy, read its log',
  })

export const workerLeaving = () => svcError('LEAVING', 'this worker is exiting: another worker takes over its metrics')

export const peerGone = (worker: string, cause?: unknown) =>
  svcError('PEER_GONE', `worker ${worker} has ended`, {
    details: { worker, retryable: true, reached: cause !== undefined },
    hint: 'Try again: another worker may have taken over. If it fails again, start the request anew',
    cause,
  })
