import { svcError } from '@svc/core'
import { dueTime } from './hours.js'

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
/** Business hours that a workflow does not set. @type {Hours} */
const OFFICE = { timezone: 'UTC', days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '09:00', to: '17:00', holidays: [] }
const CLOCK = '^([01]\\d|2[0-3]):[0-5]\\d$'

/** @typedef {import('@svc/core/contracts').NodeStep} NodeStep */
/** @typedef {import('@svc/core/contracts').NodeTask} NodeTask */
/** @typedef {import('./hours.js').Hours} Hours */
/** @typedef {{ target: string, since?: string | number, hours?: Partial<Hours> }} Settings */
/** The clock is read once: later calls get this from their state. @typedef {{ started: number, due: number }} Deadline */

/**
 * A deadline: the first call computes it and forks the body and a timer. The second call reports which of them ended first. svc
 * stores both, so the run survives a crash.
 *
 * @type {import('@svc/core/contracts').WorkflowNode}
 */
export const sla = {
  description: 'Runs its body until a deadline, and reports whether the deadline was met.',
  settings: {
    type: 'object',
    properties: {
      target: { type: 'string', pattern: '^[1-9]\\d{0,8}(ms|s|m|h)$', description: 'Time until it is due: 30m, 8h.' },
      since: { type: ['string', 'number'], description: 'Start: ISO 8601 or Unix milliseconds. Default: now.' },
      hours: {
        type: 'object',
        description: 'Business hours: other time does not count. Default: all time counts.',
        properties: {
          timezone: { type: 'string', default: OFFICE.timezone, description: 'IANA name of the time zone.' },
          days: {
            type: 'array',
            items: { enum: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] },
            minItems: 1,
            default: OFFICE.days,
            description: 'Business days.',
          },
          from: { type: 'string', pattern: CLOCK, default: OFFICE.from, description: 'Opening time.' },
          to: { type: 'string', pattern: CLOCK, default: OFFICE.to, description: 'Closing time, on the same day.' },
          holidays: {
            type: 'array',
            items: { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}$' },
            default: OFFICE.holidays,
            description: 'Dates that are not business days.',
          },
        },
        additionalProperties: false,
      },
    },
    required: ['target'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: {
      status: { enum: ['met', 'breached'] },
      started_at: { type: 'string' },
      due_at: { type: 'string' },
      result: {},
    },
    required: ['status', 'started_at', 'due_at', 'result'],
  },
  branches: ['met', 'breached'],
  body: 'do',
  repeatable: true,
  async *run(task, { signal }) {
    signal.throwIfAborted()
    const settings = /** @type {Settings} */ (task.settings)
    const deadline = /** @type {Deadline | undefined} */ (task.state)
    yield deadline ? ended(task, deadline) : begun(settings)
  },
}

/** @type {(settings: Settings) => NodeStep} */
function begun(settings) {
  const deadline = deadlineOf(settings)
  if (deadline.due <= Date.now()) return output('breached', deadline, null)
  const timer = { type: 'wait', until: deadline.due }
  // The first child to end decides. svc cancels the other.
  return {
    type: 'fork',
    join: 'first',
    children: [
      { key: 'work', body: 'do' },
      { key: 'deadline', body: timer },
    ],
    state: deadline,
  }
}

/** @type {(task: NodeTask, deadline: Deadline) => NodeStep} */
function ended({ children }, deadline) {
  const work = children?.work
  if (work?.status === 'failed') throw svcError(work.error.code, work.error.message, { details: work.error.details })
  return work?.status === 'completed' ? output('met', deadline, work.output) : output('breached', deadline, null)
}

/** @type {(settings: Settings) => Deadline} */
function deadlineOf({ target, since, hours }) {
  const started = since === undefined ? Date.now() : new Date(since).getTime()
  if (Number.isNaN(started)) throw invalid('since', 'Write a time as in 2026-03-02T09:00:00Z.')
  const [, amount, unit] = /^(\d+)(\w+)$/.exec(target) ?? []
  const length = Number(amount) * UNITS[/** @type {keyof typeof UNITS} */ (unit)]
  const due = dueWithin(started, length, hours && { ...OFFICE, ...hours })
  if (due === undefined) throw invalid('hours', 'Allow enough business hours for the target.')
  return { started, due }
}

/** @type {typeof dueTime} */
function dueWithin(started, length, hours) {
  try {
    return dueTime(started, length, hours)
  } catch (cause) {
    if (cause instanceof RangeError) throw invalid('hours.timezone', 'Write an IANA time zone, for example Europe/Berlin.')
    throw cause
  }
}

/** @type {(status: 'met' | 'breached', deadline: Deadline, result: import('@svc/core/contracts').Json) => NodeStep} */
const output = (status, { started, due }, result) => ({
  type: 'output',
  output: { status, started_at: new Date(started).toISOString(), due_at: new Date(due).toISOString(), result },
  branch: status,
})

const invalid = (/** @type {string} */ field, /** @type {string} */ hint) =>
  svcError('INVALID_VALUE', `${field} is not valid`, { details: { field, reason: hint }, hint })
