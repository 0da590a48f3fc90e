import type { WorkflowNode } from '@svc/core/contracts'
import type { DefinitionContext } from '../src/index.ts'

const settings = (properties: object, required: string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
const type = (rest: Omit<WorkflowNode, 'description' | 'repeatable' | 'run'>): WorkflowNode => ({
  description: 'For tests',
  repeatable: true,
  async *run() {
    yield { type: 'output', output: null }
  },
  ...rest,
})

/** Types of nodes of every kind there is. */
const TYPES: Readonly<Record<string, WorkflowNode>> = {
  give: type({ settings: settings({ value: {} }, ['value']) }),
  ask: type({
    settings: settings({ if: { type: 'string', expression: 'bool' } }, ['if']),
    output: { type: 'boolean' },
    branches: ['true', 'false'],
  }),
  person: type({ settings: settings({ kind: { enum: ['approval', 'choice'] } }), branches: 'any' }),
  choose: type({
    settings: settings({
      kind: { enum: ['approval', 'choice'] },
      choices: { type: 'array', items: { type: 'string' } },
      event: {},
    }),
    branches: 'any',
    answers: [
      { having: { kind: 'choice' }, listed: 'choices', optional: ['timeout'] },
      { given: ['event'], branches: ['event'] },
      { having: { kind: 'approval' }, branches: ['approved'], optional: ['rejected'] },
      {},
    ],
  }),
  count: type({
    settings: settings({ width: { type: 'integer', minimum: 1 }, words: { type: 'array', items: { type: 'string' } } }),
    output: { type: 'object', properties: { total: { type: 'integer' } }, additionalProperties: false },
  }),
  each: type({
    settings: settings({ over: { expression: 'list' } }, ['over']),
    output: { type: 'array' },
    body: 'do',
    vars: { item: true, index: { type: 'integer' } },
  }),
  again: type({ settings: settings({ until: { type: 'string', expression: 'bool', late: true } }, ['until']), body: 'do' }),
  both: type({ settings: settings({}), output: { type: 'object' }, body: 'bodies' }),
  use: type({
    settings: settings({
      tool: { type: 'string' },
      tools: { type: 'array', items: { type: 'string' } },
      profile: { type: 'string' },
      mode: { type: 'string' },
      team: { type: 'string' },
    }),
    names: { tool: 'tool', tools: 'tools', profile: 'profile', mode: 'mode', team: 'team' },
  }),
  part: type({ settings: settings({ workflow: { type: 'string' }, input: {} }, ['workflow']), names: { workflow: 'workflow' } }),
}

export const CONTEXT: DefinitionContext = {
  typeOf: name => (Object.hasOwn(TYPES, name) ? TYPES[name] : undefined),
  types: () => Object.keys(TYPES),
  has: (kind, name) => kind === 'workflow' || name === 'read_file',
  names: kind => (kind === 'tool' ? ['read_file'] : []),
  secrets: ['TOKEN'],
}
