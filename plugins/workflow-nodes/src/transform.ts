import type { WorkflowNode } from '@svc/core/contracts'

/** Answers a value made of others. */
export const transform: WorkflowNode = {
  description: 'Answers a value, with expressions in it.',
  settings: {
    type: 'object',
    properties: { value: { description: 'What it answers' } },
    required: ['value'],
    additionalProperties: false,
  },
  repeatable: true,
  async *run({ settings }) {
    yield { type: 'output', output: settings.value ?? null }
  },
}
