import type { WorkflowNode } from '@svc/core/contracts'

/**
 * Called again after each `wait` or `fork`, perhaps in another process and days later, with `woken` or `children` and the `state` that it gave: so it is written
 * as a function of its task, and keeps nothing itself.
 */
//js: /** @type {import('@svc/core/contracts').WorkflowNode} */
export const sampleWord: WorkflowNode = {
  description: 'Asks a person for a word and answers it joined to a text.',
  settings: {
    type: 'object',
    properties: { text: { type: 'string', maxLength: 10_000, description: 'What stands before the word.' } },
    required: ['text'],
    additionalProperties: false,
  },
  output: { type: 'string' },
  repeatable: true,
  async *run({ settings, woken }, { signal }) {
    signal.throwIfAborted()
    if (woken?.by === 'answer') yield { type: 'output', output: `${String(settings.text)} ${String(woken.data)}` }
    else yield { type: 'wait', ask: { kind: 'input', message: 'Which word?', schema: { type: 'string' } } }
  },
}
