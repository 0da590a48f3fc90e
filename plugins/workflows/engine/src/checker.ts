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
import { scheduleProblem } from './definition-schedule.ts'

/** Checks definitions. */
export interface Checker {
  /** Reads and checks a text. An unreadable definition gets the name of its file. */
  text(text: string, file: string): { readonly definition: WorkflowDefinition; readonly problems: readonly WorkflowProblem[] }
  definition(definition: WorkflowDefinition): readonly WorkflowProblem[]
  /** Changes with every change of the names that definitions can use. */
  version(): string
}

/** The names that definitions can use besides their own nodes. */
export interface NameLookup {
  readonly types: SlotView<WorkflowNode>
  /** Whether a tool, profile, mode, team or workflow of this name exists. Returns true while that is unknown. */
  readonly has: (kind: NameKind, name: string) => boolean
  readonly secrets: readonly string[]
  /** Existing names, for hints. */
  readonly names: (kind: NameKind) => readonly string[]
  /** The JSON Schema of a setting that a node passes to a named thing, if it is known. */
  readonly takes: (kind: NameKind, name: string, setting: string) => JsonSchema | undefined
  /** A workflow that is already in memory. */
  readonly definitionOf: (workflow: string) => WorkflowDefinition | undefined
  /** Changes whenever `has` can return something else, except for workflows. */
  readonly version: () => string
}

export function createChecker(lookup: NameLookup): Checker {
  const about = {
    ...lookup,
    scheduleProblem,
    typeOf: (name: string) => lookup.types.get(name),
    types: () => lookup.types.names(),
  }
  return {
    text: (text, file) => readDefinition(text, file, about),
    definition: definition => problemsOf(definition, about),
    version: () => `${lookup.types.version}/${lookup.version()}`,
  }
}

/** The slots that definitions refer to. */
export const SLOTS = {
  types: WorkflowNodes,
  definitions: WorkflowDefinitions,
  tools: Tools,
  modes: Modes,
  teams: TeamDefinitions,
}

interface NameLookupSlots {
  readonly tools: SlotView<Pick<Tool, 'parameters'>>
  readonly modes: SlotView<unknown>
  readonly teams: SlotView<unknown>
  /** Undefined without a selection service. */
  readonly profiles: readonly string[] | undefined
}

/** Profiles come from a file that is read at startup. */
export const profilesOf = async (selection: Selection | undefined, ctx: CallContext): Promise<readonly string[] | undefined> =>
  (await selection?.profiles(ctx))?.profiles.map(({ name }) => name)

type Names = Pick<NameLookup, 'has' | 'names' | 'takes' | 'version'>

/** The names in slots that definitions can use. */
export function createNameLookup({ tools, modes, teams, profiles }: NameLookupSlots): Names {
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

/** Adds workflows, which can be files. */
export const withWorkflowNames = (given: Names, library: () => WorkflowNames): Omit<NameLookup, 'types' | 'secrets'> => ({
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
  // a file that was not checked can contain any value
  if (!definition || !isTree(parameters)) return undefined
  const required = Object.keys(parameters).filter(name => !Object.hasOwn(Object(parameters[name]), 'default'))
  return { type: 'object', properties: { ...parameters }, required, additionalProperties: false } as JsonSchema
}
