import type { WorkflowNode } from '@svc/core/contracts'

/**
 * svc calls `run` again after each `wait` or `fork`, possibly days later in another process, with `woken` or `children` and the
 * returned `state`. So the function depends only on its task and stores nothing itself.
 */
//js: /** @type {import('@svc/core/contracts').WorkflowNode} */
export const sampleWord: WorkflowNode = {
  description: 'Asks a person for a word and appends it to a text.',
  settings: {
    type: 'object',
    properties: { text: { type: 'string', maxLength: 10_000, description: 'Text before the word.' } },
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
