import type { SlotView } from '@svc/core'
import { Modes, TeamDefinitions, Tools, WorkflowDefinitions, WorkflowNodes } from '@svc/core/contracts'
import type { Ground } from './checker.ts'

/** What workflows are made of, by name. */
export const SLOTS = {
  types: WorkflowNodes,
  definitions: WorkflowDefinitions,
  tools: Tools,
  modes: Modes,
  teams: TeamDefinitions,
}

export interface GroundParts {
  readonly tools: SlotView<unknown>
  readonly modes: SlotView<unknown>
  readonly teams: SlotView<unknown>
}

/** What definitions may name. Profiles and workflows are looked for when they are used: they may be files. */
export const groundOf = (parts: GroundParts): Pick<Ground, 'has' | 'version'> => ({
  has(kind, name) {
    if (kind === 'tool') return parts.tools.has(name)
    if (kind === 'mode') return parts.modes.has(name)
    return kind !== 'team' || parts.teams.has(name)
  },
  version: () => `${parts.tools.version}/${parts.modes.version}/${parts.teams.version}`,
})
