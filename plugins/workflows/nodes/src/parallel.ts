import type { ChildOutcome, Json, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { raised } from './errors.ts'

type Join = 'all' | 'any' | 'first'

/** Does several things at once. */
export const parallel: WorkflowNode = {
  description:
    'Runs its bodies at once: all of them, until one completes (any), or until one ends (first). It answers the outputs by the names of the bodies.',
  settings: objectOf(
    {
      join: { enum: ['all', 'any', 'first'], default: 'all', description: 'What it waits for' },
      width: { type: 'integer', minimum: 1, description: 'So many at a time; default all' },
    },
    ['join', 'width']
  ),
  output: { type: 'object', description: 'The output of each body that completed, by its name' },
  body: 'bodies',
  repeatable: true,
  async *run({ settings, bodies, children }) {
    const join = (settings.join ?? 'all') as Join
    const width = settings.width === undefined ? {} : { width: settings.width as number }
    if (children) yield { type: 'output', output: joined(children, join) }
    else
      yield { type: 'fork', join, failFast: join === 'all', ...width, children: bodies.map(name => ({ key: name, body: name })) }
  },
}

/** The outputs by name. Throws what failed, where that was needed. */
function joined(children: Readonly<Record<string, ChildOutcome>>, join: Join): Json {
  const ended = Object.entries(children)
  const done = ended.flatMap(([name, one]) => (one.status === 'completed' ? [[name, one.output] as const] : []))
  const failure = ended.map(([, one]) => one).find(one => one.status === 'failed')
  if (failure && (join === 'all' || done.length === 0)) throw raised(failure.error)
  return Object.fromEntries(done)
}
