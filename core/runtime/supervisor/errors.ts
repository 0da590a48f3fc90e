import { svcError } from '@svc/core'

export const workerEnded = (how: string, plugin?: string) =>
  plugin === undefined
    ? svcError('WORKER_DIED', `the worker ended before it was ready (${how})`, {
        hint: 'its last lines, above or in the log, tell why',
      })
    : svcError('WORKER_DIED', `the worker ended before it was ready (${how}), while it handled a message of ${plugin}`, {
        details: { plugin },
        hint: `disable or remove the plugin: svc plugins disable ${plugin}`,
      })

export const workerShortLived = (ms: number) =>
  svcError('WORKER_DIED', `the new worker was ready and ended within ${ms} ms`, {
    hint: 'its last lines in the log tell why; a plugin may do something after its setup that nothing catches',
  })

export const workerSlow = (ms: number) =>
  svcError('WORKER_TIMEOUT', `the worker was not ready within ${ms} ms`, {
    details: { ms },
    hint: 'its log tells what it was waiting for',
  })

export const workerBlocked = (ms: number) =>
  svcError(
    'WORKER_BLOCKED',
    `the worker gave no sign of life for ${ms} ms before it was ready: something keeps its event loop busy`,
    {
      details: { ms },
      hint: 'most likely the module or the setup of a plugin that runs in-process: fix it, or let it run with isolation: process, where it alone is stopped',
    }
  )

export const crashLoop = (deaths: number, how: string) =>
  svcError('CRASH_LOOP', `${deaths} workers in a row died soon after they were brought up, the last one with ${how}`, {
    details: { deaths, how },
    hint: 'the log above tells why; fix the configuration or the plugin and start again',
  })

export const notRunning = (state: string) =>
  svcError('NOT_RUNNING', `the server is ${state}: it takes no new configuration`, {
    details: { state },
    hint: 'start it with svc serve',
  })

export const noSupervisor = () =>
  svcError('NO_SUPERVISOR', 'this process was not forked by a supervisor', { hint: 'start it with svc serve' })

export const listenLate = (port: number) =>
  svcError('LISTEN_LATE', `port ${port} was asked for after the worker was ready`, {
    details: { port },
    hint: 'open the port in a tap of Host.hooks.ready',
  })

export const broadcastTimeout = (pid: number, topic: string, ms: number) =>
  svcError('UNAVAILABLE', `worker ${pid} did not take "${topic}" within ${ms} ms`, {
    details: { pid, topic, retryable: true },
    hint: 'it holds nevertheless, and that worker takes it as soon as it can; the log tells what it is busy with',
  })

export const workerLeaving = () => svcError('LEAVING', 'this worker ends: another one takes over what is to be counted')

export const peerGone = (worker: string, cause?: unknown) =>
  svcError('PEER_GONE', `worker ${worker} has ended`, {
    details: { worker, retryable: true, reached: cause !== undefined },
    hint: 'what it held is gone with it; ask the one that has taken it over',
    cause,
  })
