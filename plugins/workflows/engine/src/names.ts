import { basename, extname } from 'node:path'
import type { WorkflowDefinition } from '@svc/core/contracts'

/** A file is found by its name, so that is what its workflow is called. */
export const nameOf = (source: string) => basename(source, extname(source))

/** Whether what a file of code exports may be a definition. */
export const isNamed = (value: unknown): value is WorkflowDefinition =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'

export const isPath = (workflow: string) => /[/\\]|\.(ya?ml|json|m?[jt]s)$/.test(workflow)
