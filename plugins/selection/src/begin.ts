import type { SlotView } from '@svc/core'
import type { Mode } from '@svc/core/contracts'
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
