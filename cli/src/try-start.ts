import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { SvcError } from '@svc/core'
import { fromWire } from '@svc/runtime'
import type { Trial } from './trial.ts'
import { trialEnded, trialHung } from './errors.ts'

/** The entry of the trial process; the path is the same from `src` and from `dist`. */
const TRIAL = fileURLToPath(new URL('../bin/trial.js', import.meta.url))

/** Without a sign of life for this long, a setup never ends. */
const HANG_MS = 30_000

/**
 * Starts a host once in its own process, without plugins that listen, and returns the problems that `svc serve` would have. A
 * setup can end or block that process. Each plugin has `host.setup_timeout_ms`. An abort ends the trial without problems.
 */
export async function startProblems(trial: Trial = {}, signal?: AbortSignal): Promise<SvcError[]> {
  const end = Promise.withResolvers<SvcError[]>()
  const interrupted = () => end.resolve([])
  const hang = setTimeout(() => end.resolve([trialHung(HANG_MS)]), HANG_MS)
  const child = fork(TRIAL, { execArgv: process.execArgv, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  child.on('error', end.reject)
  child.on('exit', (code, by) => end.resolve([trialEnded(by ?? `exit code ${code}`)]))
  child.on('message', message => (Array.isArray(message) ? end.resolve(message.map(fromWire)) : hang.refresh()))
  signal?.addEventListener('abort', interrupted)
  if (signal?.aborted) interrupted()
  child.send(trial)
  try {
    return await end.promise
  } finally {
    clearTimeout(hang)
    signal?.removeEventListener('abort', interrupted)
    child.kill('SIGKILL')
  }
}
