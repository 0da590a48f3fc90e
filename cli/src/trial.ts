import { once } from 'node:events'
import { ensureHome, problemsToWire } from '@svc/runtime'
import type { Lock } from '@svc/plugin-manager/installed'
import { startInnerHost } from './inner-host.ts'
import { findSettings, here } from './settings.ts'

/** What is tried: `svc serve` with this file of configuration, and with this set of plugins in place of what is installed. */
export interface Trial {
  readonly config?: string | undefined
  readonly installed?: Lock | undefined
}

const BEAT_MS = 1_000

/** Says that this process's loop still turns, until it has been told what to try, has tried it, and has answered with what is wrong. */
export async function tryStart(): Promise<void> {
  // who has started this process ends it
  process.on('SIGINT', () => {})
  process.on('disconnect', () => process.exit())
  const answer = (error?: unknown) => process.send!(error === undefined ? [] : problemsToWire(error), () => process.exit())
  process.on('uncaughtException', answer)
  setInterval(() => process.send!('beat'), BEAT_MS)
  const [trial] = (await once(process, 'message')) as [Trial]
  await startOnce(trial).then(() => answer(), answer)
}

async function startOnce({ config, installed }: Trial): Promise<void> {
  const place = { ...here(), ...(installed ? { installed } : {}) }
  const settings = await findSettings(config === undefined ? {} : { config }, place)
  await using _host = await startInnerHost(settings, ensureHome())
}
