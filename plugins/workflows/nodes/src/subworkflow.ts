import type { WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { outputOf } from './children.ts'

/** Runs another workflow. */
export const subworkflow: WorkflowNode = {
  description: 'Runs another workflow, as it was when the run began. It answers its result.',
  settings: objectOf(
    {
      workflow: { type: 'string', minLength: 1, description: 'Its name; no expression' },
      input: { type: 'object', default: {}, description: 'Its input' },
      parameters: { type: 'object', default: {}, description: 'Its parameters' },
    },
    ['input', 'parameters']
  ),
  names: { workflow: 'workflow' },
  calledWith: { input: 'workflow', parameters: 'workflow' },
  repeatable: true,
  async *run({ settings, children }) {
    const { workflow, input = {}, parameters = {} } = settings
    if (children) yield { type: 'output', output: outputOf(children.run) }
    else
      yield { type: 'fork', join: 'all', children: [{ key: 'run', body: { workflow: workflow as string, input, parameters } }] }
  },
}
