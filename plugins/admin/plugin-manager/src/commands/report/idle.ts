import type { LockedPlugin } from '../../set.ts'
import { unconfiguredIn } from '@svc/cli/program'

/** An installed plugin that is switched on, and of which nothing runs. */
export interface Idle {
  readonly locked: LockedPlugin
  /** `not configured`: it waits for an entry of the configuration; `not loaded`: it has been switched off there, or came after the start. */
  readonly health: 'not configured' | 'not loaded'
  /** What makes it run. */
  readonly hint: string
}

/** Those of `plugins` that none of `loaded` is. */
export async function idleOf(
  plugins: readonly LockedPlugin[],
  loaded: readonly { readonly name: string }[],
  config?: string
): Promise<Idle[]> {
  const names = new Set(loaded.map(one => one.name))
  const idle = plugins.filter(one => one.enabled && !names.has(one.name))
  if (idle.length === 0) return []
  // what is wrong with the configuration is not the matter of those who ask
  const waiting = await unconfiguredIn('providers', config).catch(() => [])
  return idle.map(locked => {
    const hint = waiting.find(one => one.plugin === locked.name)?.hint
    return hint === undefined ? { locked, ...NOT_LOADED } : { locked, health: 'not configured', hint }
  })
}

const NOT_LOADED = {
  health: 'not loaded',
  hint: 'svc reload, where a server runs; unless svc.config.* says enabled: false of it',
} as const

/** What a person reads of it: `not configured: write providers: { weather: {} } into svc.config.*`. */
export const idleText = ({ health, hint }: Idle): string => `${health}: ${hint}`
