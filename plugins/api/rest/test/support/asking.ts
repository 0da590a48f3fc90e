import { Peers, type WorkflowDefinition, WorkflowDefinitions, type WorkflowNode, WorkflowNodes } from '@svc/core/contracts'
import { type Fixture, item, service } from '@svc/testing'

/** Waits for an answer, or for the event that `event` names; its output is what came. */
const asking: WorkflowNode = {
  description: 'Asks',
  settings: { type: 'object', properties: { event: { type: 'string' } } },
  repeatable: true,
  async *run({ settings: { event }, woken }) {
    if (woken) yield { type: 'output', output: woken.by === 'time' ? null : woken.data }
    else if (typeof event === 'string') yield { type: 'wait', event }
    else yield { type: 'wait', ask: { kind: 'approval', message: 'Shall it go on?' } }
  },
}

/** Reports progress, and fails if its configuration says so. */
const telling: WorkflowNode = {
  description: 'Tells',
  settings: { type: 'object', properties: { fail: { type: 'boolean' } } },
  repeatable: true,
  async *run({ settings: { fail } }) {
    yield { type: 'progress', message: 'half', fraction: 0.5 }
    if (fail) throw Object.assign(new Error('it broke'), { code: 'BROKEN' })
    yield { type: 'output', output: { told: true } }
  },
}

const workflows: Record<string, WorkflowDefinition> = {
  sum: {
    name: 'sum',
    description: 'Adds',
    version: '2',
    inputs: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] },
    parameters: { by: { type: 'integer', default: 1 } },
    nodes: { add: { type: 'transform', value: { sum: '${{ input.a + parameters.by }}' } } },
  },
  plain: { name: 'plain', nodes: { one: { type: 'transform', value: 7 } } },
  ask: { name: 'ask', nodes: { ask: { type: 'asking', next: 'tell' }, tell: { type: 'telling' } } },
  listen: { name: 'listen', nodes: { listen: { type: 'asking', event: 'paid' } } },
  fail: { name: 'fail', nodes: { tell: { type: 'telling', fail: true } } },
}

/** One worker of a server: it takes runs from the queue. */
const peers: Peers = {
  broadcast: async () => {},
  metrics: async () => [],
  acquire: async () => true,
  release: async () => {},
  self: async () => 'only',
  async *ask() {},
}

/** The engine's plugins, and workflows that wait until a test says what they wait for. */
export const WITH_WORKFLOWS = {
  plugins: ['store-memory', 'queue-store', 'workflow-nodes', 'workflows'],
  more: [
    service(Peers, peers),
    item(WorkflowNodes, 'asking', asking),
    item(WorkflowNodes, 'telling', telling),
    ...Object.entries(workflows).map(([name, workflow]) => item(WorkflowDefinitions, name, workflow)),
  ] as readonly Fixture[],
}
