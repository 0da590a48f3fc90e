import { equal } from 'node:assert/strict'

const FRIDAY = '2126-03-01T15:00:00Z'
const HOURS = { timezone: 'Europe/Berlin', days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '09:00', to: '17:00', holidays: [] }

/** @type {(due: string) => (output: any, branch: string | undefined) => void} */
const met = due => (output, branch) => {
  equal(branch, 'met')
  equal(output.due_at, due)
}

/** Samples for the kits that `svc plugins test` and the test beside this file run. */
/** @type {import('@svc/testing').PluginSamples} */
const samples = {
  nodes: {
    sla: {
      good: [
        { settings: { target: '2h', since: FRIDAY, hours: HOURS }, expect: met('2126-03-04T09:00:00.000Z') },
        { settings: { target: '1h' }, expect: (_, branch) => equal(branch, 'met') },
        { settings: { target: '1h', since: FRIDAY, hours: {} }, expect: met('2126-03-01T16:00:00.000Z') },
        { settings: { target: '1h', since: '2026-03-02T09:00:00Z' }, expect: (_, branch) => equal(branch, 'breached') },
        {
          settings: { target: '1h', since: FRIDAY },
          child: ({ key }) => (key === 'deadline' ? { status: 'completed', output: null } : { status: 'cancelled' }),
          expect: (_, branch) => equal(branch, 'breached'),
        },
      ],
      // Times that begin with the clock, in the sample without "since".
      unstable: ['output.started_at', 'output.due_at', 'state.*', 'children.*.body.until'],
      bad: [
        { settings: {} },
        { settings: { target: 'soon' } },
        { settings: { target: '1h', hours: { from: '9' } } },
        { settings: { target: '1h', since: 'soon' }, code: 'INVALID_VALUE' },
        { settings: { target: '1h', hours: { ...HOURS, timezone: 'Mars/Olympus' } }, code: 'INVALID_VALUE' },
        { settings: { target: '1h', hours: { ...HOURS, from: '17:00', to: '09:00' } }, code: 'INVALID_VALUE' },
        {
          settings: { target: '1h' },
          child: () => ({ status: 'failed', error: { code: 'BROKE', message: 'it broke', details: {} } }),
          code: 'BROKE',
        },
      ],
    },
  },
}

export default samples
