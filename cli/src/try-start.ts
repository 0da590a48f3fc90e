import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { SvcError } from '@svc/core'
import { fromWire } from '@svc/runtime'
import type { Trial } from './trial.ts'
import { trialEnded, trialHung } from './errors.ts'

/** The other half of this program; the same way up from `src` and from `dist`. */
const TRIAL = fileURLToPath(new URL('../bin/trial.js', import.meta.url))

/** Longer without a sign of life is a setup that will never end. */
const HANG_MS = 30_000

/**
 * Why `svc serve` cannot start with what is installed, or with `installed`: a host is started once, without what would listen, in a process of its own: a setup may
 * end its process, or never let go of it. Each plugin has `host.setup_timeout_ms`, as there. An abort ends it, with no problem.
 */
export async function startProblems(trial: Trial = {}, signal?: AbortSignal): Promise<SvcError[]> {
  const end = Promise.withResolvers<SvcError[]>()
  const interrupted = () => end.resolve([])
  const hang = setTimeout(() => end.resolve([trialHung(HANG_MS)]), HANG_MS)
  const child = fork(TRIAL, { execArgv: process.execArgv, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
  child.on('error', end.reject)
  child.on('exit', (code, by) => end.resolve([trialEnded(by ?? `exit code ${code}`)]))
  child.on('message', told => (Array.isArray(told) ? end.resolve(told.map(fromWire)) : hang.refresh()))
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
