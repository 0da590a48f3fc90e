import { isTree, type JsonSchema, type SlotView, type CallContext } from '@svc/core'
import {
  Modes,
  type Selection,
  TeamDefinitions,
  type Tool,
  Tools,
  type WorkflowDefinition,
  WorkflowDefinitions,
  WorkflowNodes,
} from '@svc/core/contracts'
import type { NameKind } from '@svc/workflow-lang'
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
  readonly tools: SlotView<Pick<Tool, 'parameters'>>
  readonly modes: SlotView<unknown>
  readonly teams: SlotView<unknown>
  /** Undefined where nobody tells them. */
  readonly profiles: readonly string[] | undefined
}

/** Profiles are a file's, read when the host starts. */
export const profilesOf = async (selection: Selection | undefined, ctx: CallContext): Promise<readonly string[] | undefined> =>
  (await selection?.profiles(ctx))?.profiles.map(({ name }) => name)

type Names = Pick<Ground, 'has' | 'names' | 'takes' | 'version'>

/** What definitions may name. */
export function groundOf({ tools, modes, teams, profiles }: GroundParts): Names {
  const named = profiles && { has: (name: string) => profiles.includes(name), names: () => [...profiles] }
  const views: Partial<Record<NameKind, Pick<SlotView<unknown>, 'has' | 'names'> | undefined>> = {
    tool: tools,
    mode: modes,
    team: teams,
    profile: named,
  }
  return {
    has: (kind, name) => views[kind]?.has(name) ?? true,
    names: kind => views[kind]?.names() ?? [],
    takes: (kind, name) => (kind === 'tool' ? tools.get(name)?.parameters : undefined),
    version: () => `${tools.version}/${modes.version}/${teams.version}`,
  }
}

/** The same with workflows, which may be files. */
export const groundWith = (given: Names, library: () => Library): Omit<Ground, 'types' | 'secrets'> => ({
  ...given,
  has: (kind, name) => (kind === 'workflow' ? library().isThere(name) : given.has(kind, name)),
  names: kind => (kind === 'workflow' ? library().names() : given.names(kind)),
  takes: (kind, name, setting) =>
    kind === 'workflow' ? workflowTakes(library().definitionOf(name), setting) : given.takes(kind, name, setting),
  definitionOf: name => library().definitionOf(name),
})

function workflowTakes(definition: WorkflowDefinition | undefined, setting: string): JsonSchema | undefined {
  if (setting !== 'parameters') return definition?.inputs
  const parameters: unknown = definition?.parameters ?? {}
  // of a file that was only read anything may be there
  if (!definition || !isTree(parameters)) return undefined
  const required = Object.keys(parameters).filter(name => !Object.hasOwn(Object(parameters[name]), 'default'))
  return { type: 'object', properties: { ...parameters }, required, additionalProperties: false } as JsonSchema
}
