import { schemaErrorText } from '@svc/core'
import type { Json, NodeStep, NodeTask, Question, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { type ParametersCheck, toolSchema } from '@svc/plugin-kit/tool-schema'
import { invalid, nothingCame, rejected, unanswered } from './errors.ts'
import { duration, endOf } from './settings.ts'

interface HumanSettings {
  readonly kind?: Question['kind']
  readonly message: string
  readonly choices?: readonly string[]
  readonly schema?: Question['schema']
  readonly for?: string
  readonly fallback?: Json
}

/** The node type `human`, which asks a person. */
export const human: WorkflowNode = {
  description: 'Asks a person for an approval, a choice or input. The run sleeps until the answer, and uses no memory meanwhile.',
  settings: {
    ...objectOf(
      {
        kind: { enum: ['approval', 'choice', 'input'], default: 'approval', description: 'Kind of question' },
        message: { type: 'string', minLength: 1, description: 'Text of the question' },
        choices: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          minItems: 1,
          uniqueItems: true,
          description: 'Choices',
        },
        schema: { type: 'object', description: 'JSON Schema of the input' },
        for: duration('How long it waits; default: the maximum age of the run'),
        fallback: { description: 'Answer to use after the time limit' },
      },
      ['kind', 'choices', 'schema', 'for', 'fallback']
    ),
    // only a choice needs choices
    if: { properties: { kind: { enum: ['approval', 'input'] } } },
    else: { required: ['choices'] },
  },
  output: objectOf({
    answer: { description: 'true or false, the choice, or the input; null without an answer' },
    timed_out: { type: 'boolean' },
  }),
  branches: 'any',
  answers: [
    { having: { kind: 'choice' }, listed: 'choices', optional: ['timeout'] },
    { having: { kind: 'input' }, branches: ['answered'], optional: ['timeout'] },
    { branches: ['approved'], optional: ['rejected', 'timeout'] },
  ],
  repeatable: true,
  async *run(task) {
    const settings = task.settings as unknown as HumanSettings
    if (!task.woken) yield await asked(settings)
    else if (task.woken.by === 'time') yield late(settings, task)
    else yield answered(settings, task, task.woken.data, false)
  },
}

async function asked(settings: HumanSettings): Promise<NodeStep> {
  await checkAnswerable(settings)
  const { kind = 'approval', message, choices, schema, for: length } = settings
  const ask: Question = { kind, message, ...(choices ? { choices } : {}), ...(schema ? { schema } : {}) }
  return { type: 'wait', ask, ...(length === undefined ? {} : { until: endOf('for', length) }) }
}

/** Rejects a question with an invalid schema or fallback before it is asked, because it could not be answered. Throws INVALID_VALUE. */
async function checkAnswerable({ kind = 'approval', choices = [], schema, fallback }: HumanSettings): Promise<void> {
  const check = kind === 'input' && schema !== undefined ? await schemaOf(schema) : undefined
  if (fallback === undefined) return
  if (kind === 'approval' && typeof fallback !== 'boolean') throw invalid('fallback', 'must be true or false')
  if (kind === 'choice' && !choices.includes(fallback as string))
    throw invalid('fallback', 'must be one of the choices', { allowed: choices })
  const [problem] = check?.check(structuredClone(fallback), 'first') ?? []
  if (problem) throw invalid(problem.path === '' ? 'fallback' : `fallback.${problem.path}`, problem.message)
}

async function schemaOf(schema: NonNullable<Question['schema']>): Promise<ParametersCheck> {
  try {
    const made = await toolSchema(schema, { once: true })
    // the first check compiles the schema
    made.check(null, 'first')
    return made
  } catch (error) {
    throw invalid('schema', `is not a valid JSON Schema: ${schemaErrorText(error)}`)
  }
}

function late(settings: HumanSettings, task: NodeTask): NodeStep {
  if (settings.fallback !== undefined) return answered(settings, task, settings.fallback, true)
  if (!task.branches.includes('timeout')) throw unanswered(task.node)
  return { type: 'output', output: { answer: null, timed_out: true }, branch: 'timeout' }
}

/** Returns the branch of an answer. A rejected approval fails without a branch `rejected`, so that the run never continues by default. */
function answered({ kind = 'approval' }: HumanSettings, { node, branches }: NodeTask, answer: Json, timedOut: boolean): NodeStep {
  const branch = branchOf(kind, answer)
  if (branch === 'rejected' && kind === 'approval' && !branches.includes('rejected')) throw rejected(node)
  return { type: 'output', output: { answer, timed_out: timedOut }, branch }
}

function branchOf(kind: Question['kind'], answer: Json): string {
  if (kind === 'approval') return answer === true ? 'approved' : 'rejected'
  return kind === 'choice' && typeof answer === 'string' ? answer : 'answered'
}

interface WaitSettings {
  readonly for?: string
  readonly until?: string | number
  readonly event?: string
}

/** The node type `wait`, which waits for a time or an event. */
export const wait: WorkflowNode = {
  description:
    'Waits for a duration, until a time, or for an event (`POST /api/v1/workflows/{id}/events`). For events, `for` or `until` is the time limit.',
  settings: {
    ...objectOf(
      {
        for: duration('How long to wait'),
        until: { type: ['string', 'number'], description: 'End of the wait: an ISO 8601 time, or Unix milliseconds' },
        event: { type: 'string', pattern: '^[A-Za-z0-9_.:-]{1,100}$', description: 'Name of the event' },
      },
      ['for', 'until', 'event']
    ),
    anyOf: [{ required: ['for'] }, { required: ['until'] }, { required: ['event'] }],
    not: { required: ['for', 'until'] },
  },
  output: objectOf({ by: { enum: ['time', 'event'] }, data: { description: 'Data of the event' } }),
  branches: 'any',
  answers: [{ given: ['event'], branches: ['event'], optional: ['timeout'] }, {}],
  names: { event: 'signal' },
  repeatable: true,
  async *run(task) {
    const settings = task.settings as unknown as WaitSettings
    if (!task.woken) yield waitStep(settings)
    else yield woken(settings, task, 'data' in task.woken ? task.woken.data : undefined)
  },
}

function waitStep({ for: length, until, event }: WaitSettings): NodeStep {
  const end = length === undefined ? until && timeOf(until) : endOf('for', length)
  return { type: 'wait', ...(end === undefined || end === '' ? {} : { until: end }), ...(event === undefined ? {} : { event }) }
}

function timeOf(until: string | number): number {
  const time = typeof until === 'number' ? until : Date.parse(until)
  if (!Number.isFinite(time))
    throw invalid('until', 'must be an ISO 8601 time such as 2027-01-31T12:00:00Z', { value: String(until).slice(0, 100) })
  return time
}

function woken({ event }: WaitSettings, { node, branches }: NodeTask, data: Json | undefined): NodeStep {
  if (data !== undefined) return { type: 'output', output: { by: 'event', data }, branch: 'event' }
  const output = { by: 'time', data: null }
  if (event === undefined) return { type: 'output', output }
  if (!branches.includes('timeout')) throw nothingCame(node, event)
  return { type: 'output', output, branch: 'timeout' }
}
