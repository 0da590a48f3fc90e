import type { JsonSchema, SlotView } from '@svc/core'
import type { WorkflowDefinition, WorkflowNode, WorkflowProblem } from '@svc/core/contracts'
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
