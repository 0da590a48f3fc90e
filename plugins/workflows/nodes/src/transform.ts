import type { WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'

/** Answers a value made of others. */
export const transform: WorkflowNode = {
  description: 'Answers a value, with expressions in it.',
  settings: objectOf({ value: { description: 'What it answers' } }),
  repeatable: true,
  async *run({ settings }) {
    yield { type: 'output', output: settings.value ?? null }
  },
}
