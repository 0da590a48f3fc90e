import type { Json, NodeStep, NodeTask, Question, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/tool-parts'
import { rejected, unanswered } from './errors.ts'
import { duration, endOf } from './settings.ts'

interface HumanSettings {
  readonly kind?: Question['kind']
  readonly message: string
  readonly choices?: readonly string[]
  readonly schema?: Question['schema']
  readonly for?: string
  readonly fallback?: Json
}

/** Asks a person. */
export const human: WorkflowNode = {
  description:
    'Asks a person: for an approval, a choice, or for input. The run waits, for days if need be, and takes no room meanwhile.',
  settings: {
    ...objectOf(
      {
        kind: { enum: ['approval', 'choice', 'input'], default: 'approval', description: 'What is asked for' },
        message: { type: 'string', minLength: 1, description: 'What the person reads' },
        choices: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          minItems: 1,
          uniqueItems: true,
          description: 'What there is to choose from',
        },
        schema: { type: 'object', description: 'JSON Schema of the input' },
        for: duration('How long it waits; default: as long as the run may take'),
        fallback: { description: 'The answer where nobody answers in time' },
      },
      ['kind', 'choices', 'schema', 'for', 'fallback']
    ),
    // only a choice needs choices
    if: { properties: { kind: { enum: ['approval', 'input'] } } },
    else: { required: ['choices'] },
  },
  output: objectOf({
    answer: { description: 'true or false, the choice, or the input; null where nobody answered' },
    timed_out: { type: 'boolean' },
  }),
  branches: 'any',
  repeatable: true,
  async *run(task) {
    const settings = task.settings as unknown as HumanSettings
    if (!task.woken) yield asked(settings)
    else if (task.woken.by === 'time') yield late(settings, task)
    else yield answered(settings, task, task.woken.data, false)
  },
}

function asked({ kind = 'approval', message, choices, schema, for: length }: HumanSettings): NodeStep {
  const ask: Question = { kind, message, ...(choices ? { choices } : {}), ...(schema ? { schema } : {}) }
  return { type: 'wait', ask, ...(length === undefined ? {} : { until: endOf('for', length) }) }
}

function late(settings: HumanSettings, task: NodeTask): NodeStep {
  if (settings.fallback !== undefined) return answered(settings, task, settings.fallback, true)
  if (!task.branches.includes('timeout')) throw unanswered(task.node)
  return { type: 'output', output: { answer: null, timed_out: true }, branch: 'timeout' }
}

/** What is not approved does not simply go on: it needs a branch of its own. */
function answered({ kind = 'approval' }: HumanSettings, { node, branches }: NodeTask, answer: Json, timedOut: boolean): NodeStep {
  const branch = branchOf(kind, answer)
  if (branch === 'rejected' && kind === 'approval' && !branches.includes('rejected')) throw rejected(node)
  return { type: 'output', output: { answer, timed_out: timedOut }, branch }
}

function branchOf(kind: Question['kind'], answer: Json): string {
  if (kind === 'approval') return answer === true ? 'approved' : 'rejected'
  return kind === 'choice' && typeof answer === 'string' ? answer : 'answered'
}
