import type { WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'

/** Asks an expression, and goes the branch `true` or `false`. */
export const condition: WorkflowNode = {
  description: 'Goes one way or the other, as an expression says.',
  settings: objectOf({ if: { type: 'string', minLength: 1, expression: 'bool', description: 'The expression that decides' } }),
  output: { type: 'boolean' },
  branches: ['true', 'false'],
  repeatable: true,
  async *run({ settings }) {
    const output = settings.if === true
    yield { type: 'output', output, branch: String(output) }
  },
}
