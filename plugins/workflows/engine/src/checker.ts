import { type CallContext, isTree, type JsonSchema, type SlotView } from '@svc/core'
import {
  Modes,
  type Selection,
  TeamDefinitions,
  type Tool,
  Tools,
  type WorkflowDefinition,
  WorkflowDefinitions,
  type WorkflowNode,
  WorkflowNodes,
  type WorkflowProblem,
} from '@svc/core/contracts'
import { type NameKind, problemsOf, readDefinition } from '@svc/workflow-lang'

/** Looks what is wrong with definitions. */
export interface Checker {
  /** Of a text; a definition that cannot be read at all has the name of its file. */
  text(text: string, file: string): { readonly definition: WorkflowDefinition; readonly problems: readonly WorkflowProblem[] }
  definition(definition: WorkflowDefinition): readonly WorkflowProblem[]
  /** Differs after any change of what definitions may name. */
  version(): string
}

/** What definitions may name besides their own nodes. */
export interface Ground {
  readonly types: SlotView<WorkflowNode>
  /** Whether there is a tool, profile, mode, team or workflow of this name; what is not known yet counts as there. */
  readonly has: (kind: NameKind, name: string) => boolean
  readonly secrets: readonly string[]
  /** Names that there are, for hints. */
  readonly names: (kind: NameKind) => readonly string[]
  /** What a thing is called with in this setting, where that is known. */
  readonly takes: (kind: NameKind, name: string, setting: string) => JsonSchema | undefined
  /** A workflow, where it can be had at once. */
  readonly definitionOf: (workflow: string) => WorkflowDefinition | undefined
  /** Differs after any change of what `has` answers, of workflows aside. */
  readonly version: () => string
}

export function createChecker(ground: Ground): Checker {
  const about = { ...ground, typeOf: (name: string) => ground.types.get(name), types: () => ground.types.names() }
  return {
    text: (text, file) => readDefinition(text, file, about),
    definition: definition => problemsOf(definition, about),
    version: () => `${ground.types.version}/${ground.version()}`,
  }
}

/** What workflows are made of, by name. */
export const SLOTS = {
  types: WorkflowNodes,
  definitions: WorkflowDefinitions,
  tools: Tools,
  modes: Modes,
  teams: TeamDefinitions,
}

interface GroundParts {
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

/** The workflows that definitions can name. */
export interface WorkflowNames {
  isThere(name: string): boolean
  names(): readonly string[]
  definitionOf(name: string): WorkflowDefinition | undefined
}

/** The same with workflows, which may be files. */
export const groundWith = (given: Names, library: () => WorkflowNames): Omit<Ground, 'types' | 'secrets'> => ({
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
