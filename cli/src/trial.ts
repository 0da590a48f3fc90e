import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type SvcError, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { checkShared, ensureHome, fromWire, problemsToWire } from '@svc/runtime'
import type { Lock } from '@svc/plugin-manager/installed'
import { workersIn } from './host-options.ts'
import { startInnerHost } from './inner-host.ts'
import { here } from './command-place.ts'
import type { ServeOptions } from './serve-flags.ts'
import { findSettings } from './settings.ts'
import { trialEnded, trialHung } from './errors.ts'

/** The trial: `svc serve` with this configuration file or these options, and with this set of plugins instead of the installed one. */
interface Trial {
  readonly config?: string | undefined
  readonly options?: ServeOptions | undefined
  /** Sections whose owners start although they are surfaces. */
  readonly kept?: readonly string[] | undefined
  readonly installed?: Lock | undefined
}

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

// --- in the process of the trial ---

const BEAT_MS = 1_000
const SHARED_MS = 10_000

/** Receives the trial, runs it and sends its problems. Sends a beat each second while the event loop runs. */
export async function tryStart(): Promise<void> {
  // the parent ends this process
  process.on('SIGINT', () => {})
  process.on('disconnect', () => process.exit())
  const answer = (error?: unknown) => process.send!(error === undefined ? [] : problemsToWire(error), () => process.exit())
  process.on('uncaughtException', answer)
  setInterval(() => process.send!('beat'), BEAT_MS)
  const [trial] = (await once(process, 'message')) as [Trial]
  await startOnce(trial).then(() => answer(), answer)
}

async function startOnce({ config, options = config === undefined ? {} : { config }, installed, kept }: Trial): Promise<void> {
  const place = { ...here(), ...(installed ? { installed } : {}) }
  const settings = await findSettings(options, place)
  await using inner = await startInnerHost(settings, ensureHome(), undefined, { kept })
  const hasStore = inner.plan.loaded.some(({ plugin }) => plugin.provides?.name === Store.name)
  // as the workers of a server do when they are ready
  if (hasStore) await checkShared(inner.host.service(Store), workersIn(settings), systemContext(AbortSignal.timeout(SHARED_MS)))
}
