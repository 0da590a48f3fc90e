import type { Json, NodeStep, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { outputOf } from './children.ts'
import { loopEndless } from './errors.ts'

const MAX = 10

/** Does the same again until an expression holds. */
export const loop: WorkflowNode = {
  description:
    'Runs its body again and again until an expression holds. The body has `index` (from 0) and `last`, its output of the time before.',
  settings: objectOf(
    {
      until: {
        type: 'string',
        minLength: 1,
        expression: 'bool',
        late: true,
        description: 'Asked after each time; it has `last`, what the body answered',
      },
      max: { type: 'integer', minimum: 1, maximum: 10_000, default: MAX, description: 'So many times at most' },
      at_max: { enum: ['fail', 'end'], default: 'fail', description: 'What it does after so many' },
    },
    ['max', 'at_max']
  ),
  output: objectOf({
    last: { description: 'The last output of the body' },
    rounds: { type: 'integer', description: 'How often it has run' },
    done: { type: 'boolean', description: 'False where it has ended at `max`' },
  }),
  body: 'do',
  vars: { index: { type: 'integer' }, last: true },
  repeatable: true,
  async *run({ settings, state, children, node }) {
    if (!children) return yield forked(0, null)
    const index = (state as unknown as { readonly index: number }).index
    const last = outputOf(children[index])
    const { until, max = MAX, at_max: atMax = 'fail' } = settings
    const rounds = index + 1
    if (until !== true && rounds < (max as number)) yield forked(rounds, last)
    else if (until !== true && atMax === 'fail') throw loopEndless(node, max as number)
    else yield { type: 'output', output: { last, rounds, done: until === true } }
  },
}

const forked = (index: number, last: Json): NodeStep => ({
  type: 'fork',
  join: 'all',
  children: [{ key: String(index), body: 'do', vars: { index, last } }],
  state: { index },
})
