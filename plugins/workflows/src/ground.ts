import type { SlotView } from '@svc/core'
import { Modes, TeamDefinitions, Tools, WorkflowDefinitions, WorkflowNodes } from '@svc/core/contracts'
import type { NameKind } from '@svc/workflow'
import type { Ground } from './checker.ts'
import type { Library } from './library.ts'

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

type Names = Pick<Ground, 'has' | 'names' | 'version'>

/** What definitions may name. Profiles are looked for when they are used. */
export function groundOf({ tools, modes, teams }: GroundParts): Names {
  const views: Partial<Record<NameKind, SlotView<unknown>>> = { tool: tools, mode: modes, team: teams }
  return {
    has: (kind, name) => views[kind]?.has(name) ?? true,
    names: kind => views[kind]?.names() ?? [],
    version: () => `${tools.version}/${modes.version}/${teams.version}`,
  }
}

/** The same with workflows, which may be files. */
export const groundWith = (given: Names, library: () => Library): Omit<Ground, 'types' | 'secrets'> => ({
  ...given,
  has: (kind, name) => (kind === 'workflow' ? library().isThere(name) : given.has(kind, name)),
  names: kind => (kind === 'workflow' ? library().names() : given.names(kind)),
  definitionOf: name => library().definitionOf(name),
})
