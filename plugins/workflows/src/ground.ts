import type { SlotView } from '@svc/core'
import type { Ground } from './checker.ts'

export interface GroundParts {
  readonly tools: SlotView<unknown>
  readonly modes: SlotView<unknown>
  readonly teams: SlotView<unknown>
  readonly definitions: SlotView<unknown>
}

/** What definitions may name. Profiles are checked when they are used: they are a file's. */
export const groundOf =
  ({ tools, modes, teams, definitions }: GroundParts): Ground['has'] =>
  (kind, name) => {
    if (kind === 'tool') return tools.has(name)
    if (kind === 'mode') return modes.has(name)
    if (kind === 'team') return teams.has(name)
    return kind === 'profile' || definitions.has(name)
  }
