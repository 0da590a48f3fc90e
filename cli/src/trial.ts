import { once } from 'node:events'
import { systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { checkShared, ensureHome, problemsToWire } from '@svc/runtime'
import type { Lock } from '@svc/plugin-manager/installed'
import { workersIn } from './host-options.ts'
import { startInnerHost } from './inner-host.ts'
import { here } from './command-place.ts'
import type { ServeOptions } from './serve-flags.ts'
import { findSettings } from './settings.ts'

/** The trial: `svc serve` with this configuration file or these options, and with this set of plugins instead of the installed one. */
export interface Trial {
  readonly config?: string | undefined
  readonly options?: ServeOptions | undefined
  /** Sections whose owners start although they are surfaces. */
  readonly kept?: readonly string[] | undefined
  readonly installed?: Lock | undefined
}

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
