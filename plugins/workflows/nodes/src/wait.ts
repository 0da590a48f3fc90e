import type { Json, NodeStep, NodeTask, WorkflowNode } from '@svc/core/contracts'
import { objectOf } from '@svc/plugin-kit'
import { invalid, nothingCame } from './errors.ts'
import { duration, endOf } from './settings.ts'

interface WaitSettings {
  readonly for?: string
  readonly until?: string | number
  readonly event?: string
}

/** Waits for a time, or for an event. */
export const wait: WorkflowNode = {
  description:
    'Waits so long, until a time, or for an event (`POST /api/v1/workflows/{id}/events`), with `for` or `until` as the longest it waits.',
  settings: {
    ...objectOf(
      {
        for: duration('How long'),
        until: { type: ['string', 'number'], description: 'When: an ISO 8601 time, or Unix milliseconds' },
        event: { type: 'string', pattern: '^[A-Za-z0-9_.:-]{1,100}$', description: 'The name of an event' },
      },
      ['for', 'until', 'event']
    ),
    anyOf: [{ required: ['for'] }, { required: ['until'] }, { required: ['event'] }],
    not: { required: ['for', 'until'] },
  },
  output: objectOf({ by: { enum: ['time', 'event'] }, data: { description: 'What came with the event' } }),
  branches: 'any',
  answers: [{ given: ['event'], branches: ['event'], optional: ['timeout'] }, {}],
  repeatable: true,
  async *run(task) {
    const settings = task.settings as unknown as WaitSettings
    if (!task.woken) yield asked(settings)
    else yield woken(settings, task, 'data' in task.woken ? task.woken.data : undefined)
  },
}

function asked({ for: length, until, event }: WaitSettings): NodeStep {
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
