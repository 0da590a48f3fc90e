import { any, beside, exact, exchange, get, post, type Request, refused } from '../../exchange.ts'

const notFound = (field: string, value: string) => refused(404, 'INVALID_VALUE', exact({ field, value, reason: 'not found' }))
const RUN = '/api/v1/workflows/run'
const ofRun: readonly Request[] = [
  ...['status', 'steps', 'events', 'result'].map(what => get(`/api/v1/workflows/r0/${what}`)),
  ...['cancel', 'retry', 'pause', 'resume'].map(what => post(`/api/v1/workflows/r0/${what}`, undefined)),
  post('/api/v1/workflows/r0/replay', {}),
  post('/api/v1/workflows/r0/answer', { step: 'a', value: true }),
  post('/api/v1/workflows/r0/events', { name: 'a' }),
]

export default exchange({
  rule: 'answers an unknown workflow or run with 404, a path outside the roots with 400 whether the file exists or not, and input that does not fit with 400',
  source: 'decisions.md 1: unknown workflow name or run id; workflow, input, parameters',
  together: 'parts',
  config: { plugins: [beside('../../../support/runs.ts', import.meta.url)] },
  steps: [
    { request: post(RUN, { workflow: 'none' }), expect: notFound('workflow', 'none') },
    ...ofRun.map(request => ({ request, expect: notFound('workflow_id', 'r0') })),
    ...['/etc/passwd', '../x.yaml', '/etc/none.yaml'].map(workflow => ({
      request: post(RUN, { workflow }),
      expect: refused(
        400,
        'INVALID_VALUE',
        exact({ field: 'workflow', value: workflow, reason: 'not a workflow file in a folder of workflows.roots' })
      ),
    })),
    { request: post(RUN, { workflow: 'sum' }), expect: refused(400, 'INVALID_VALUE', { field: 'input.a', reason: any('text') }) },
    {
      request: post(RUN, { workflow: 'sum', input: { a: 1 }, parameters: { none: 1 } }),
      expect: refused(400, 'INVALID_VALUE', { field: any('text'), reason: any('text') }),
    },
    {
      request: post(RUN, { input: {} }),
      expect: refused(400, 'MISSING_FIELD', { required_fields: ['workflow'], provided_fields: ['input'] }),
    },
    {
      request: post(RUN, { workflow: 'sum', input: [] }),
      expect: refused(400, 'INVALID_VALUE', { field: 'input', reason: any('text') }),
    },
  ],
})
