import type { Log, SlotView } from '@svc/core'
import type { Mode, Provider, Tool } from '@svc/core/contracts'
import { notAllowed } from './errors.ts'
import type { Profiles } from './profiles.ts'

/** What the server was told to begin with must exist: modes are known once every plugin is set up. */
export function checkBegin(begin: { profile?: string; mode?: string }, profiles: Profiles, modes: SlotView<Mode>): undefined {
  if (begin.profile !== undefined && !profiles.byName.has(begin.profile))
    throw notAllowed('profile', begin.profile, [...profiles.byName.keys()])
  if (begin.mode !== undefined && !modes.has(begin.mode)) throw notAllowed('mode', begin.mode, modes.names())
  for (const { name, mode } of profiles.byName.values()) {
    if (mode !== undefined && !modes.has(mode)) throw notAllowed(`mode (of profile "${name}")`, mode, modes.names())
  }
}

/** Providers and tools come and go, so a profile that names one which is not there is worth a warning, no more. */
export function warnOfNames(profiles: Profiles, providers: SlotView<Provider>, tools: SlotView<Tool>, log: Log): void {
  for (const { name: profile, provider, tools: named = [], fallback = [] } of profiles.byName.values()) {
    const missing = {
      providers: [provider, ...fallback.map(one => one.provider)].filter(one => one !== undefined && !providers.has(one)),
      tools: named.filter(one => !tools.has(one)),
    }
    if (missing.providers.length + missing.tools.length > 0) log.warn({ profile, missing }, 'a profile names what is not there')
  }
}
