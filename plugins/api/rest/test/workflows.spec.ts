import { expect } from 'chai'
import { serveRest } from './support/rest-server.ts'
import { PATH, serveRuns, until } from './support/runs.ts'

describe('workflows', () => {
  it('have no routes where there is no engine', async () => {
    await using served = await serveRest()
    const { status, body } = await served.call('GET', PATH)
    expect([status, body.error_code]).to.deep.equal([404, 'NOT_FOUND'])
  })

  it('are listed and shown', async () => {
    await using served = await serveRuns()
    const { body } = await served.call('GET', PATH)
    const sum = { name: 'sum', description: 'Adds', version: '2', nodes: 1, problems: [] }
    expect((body.workflows as object[]).find(workflow => (workflow as { name: string }).name === 'sum')).to.include({
      name: 'sum',
      nodes: 1,
    })
    const shown = await served.call('GET', `${PATH}/definition?workflow=sum`)
    expect(shown.body.workflow).to.deep.include(sum)
    expect(shown.body.definition).to.have.nested.property('nodes.add.type', 'transform')
  })

  it('that end while the request waits are answered with their result', async () => {
    await using served = await serveRuns()
    const { status, body } = await served.call('POST', `${PATH}/run`, {
      workflow: 'sum',
      input: { a: 2 },
      parameters: { by: 5 },
    })
    expect([status, body.success, body.status, body.result]).to.deep.equal([200, true, 'completed', { sum: 7 }])
    expect(body.execution_time_ms).to.satisfy(Number.isInteger)
    expect(body).to.not.have.any.keys('message', 'status_url', 'error')
  })

  it('answer an object, whatever the result is', async () => {
    await using served = await serveRuns()
    const { result, workflow_id } = await served.begin('plain', {})
    expect(result).to.deep.equal({ value: 7 })
    expect((await served.of(workflow_id, 'status')).body.result).to.deep.equal({ value: 7 })
  })

  it('go on in the background where they take longer, and say what they wait for', async () => {
    await using served = await serveRuns({ workflows: { sync_wait_ms: 1 } })
    const body = await served.begin('ask', {})
    expect(body).to.include({ success: true, status: 'running', status_url: `${PATH}/${body.workflow_id}/status` })
    expect(body.message).to.be.a('string')
    const events = served.watch(body.workflow_id)
    await until(events, 'node_waiting')
    const status = (await served.of(body.workflow_id, 'status')).body
    expect(status).to.include({ workflow: 'ask', status: 'running', current_node: 'ask', progress: 0, result: null, error: null })
    expect(status.waiting_for).to.have.nested.property('[0].question.kind', 'approval')
    await events.return()
  })

  it('do not wait with Prefer: respond-async, and wait as long as wait=N says', async () => {
    await using served = await serveRuns({ workflows: { sync_wait_ms: 60_000 } })
    expect((await served.begin('ask', { prefer: 'respond-async' })).status).to.equal('running')
    expect((await served.begin('ask', { prefer: 'handling=lenient, wait=0' })).status).to.equal('running')
    await using quick = await serveRuns({ workflows: { sync_wait_ms: 0 } })
    expect((await quick.begin('plain', { prefer: 'respond-async; a=b, wait="30"' })).status).to.equal('completed')
  })

  it('begin once for an Idempotency-Key', async () => {
    await using served = await serveRuns()
    const [first, again] = await Promise.all([1, 2].map(() => served.begin('plain', { 'idempotency-key': 'k1' })))
    expect(first?.workflow_id).to.equal(again?.workflow_id)
    expect((await served.begin('plain', { 'idempotency-key': 'other' })).workflow_id).to.not.equal(first?.workflow_id)
    const { body } = await served.call('POST', `${PATH}/run`, { workflow: 'plain' }, { 'idempotency-key': 'a b' })
    expect(body.details).to.deep.equal({ field: 'Idempotency-Key', value: 'a b', reason: 'must be 1 to 255 visible characters' })
  })

  it('are retried once for an Idempotency-Key', async () => {
    await using served = await serveRuns()
    const { workflow_id } = await served.begin('fail', {})
    const retry = async (key: string, id = workflow_id) =>
      (await served.call('POST', `${PATH}/${id}/retry`, undefined, { 'idempotency-key': key })).body
    const [first, again] = await Promise.all([retry('k'), retry('k')])
    expect(first).to.include({ status: 'failed', error: 'it broke' })
    expect(first.workflow_id).to.equal(again.workflow_id).and.to.not.equal(workflow_id)
    expect((await retry('other')).workflow_id).to.not.equal(first.workflow_id)
    expect((await retry('k', first.workflow_id as string)).details).to.deep.include({
      reason: 'was already used for another request',
    })
  })

  it('that fail within the wait are 200 and say why', async () => {
    await using served = await serveRuns()
    const { status, body } = await served.call('POST', `${PATH}/run`, { workflow: 'fail' })
    expect([status, body.success, body.status, body.error, body.failure_code]).to.deep.equal([
      200,
      false,
      'failed',
      'it broke',
      'BROKEN',
    ])
    const again = await served.send(body.workflow_id as string, 'retry')
    expect(again.body.workflow_id).to.not.equal(body.workflow_id)
    expect((await served.of(again.body.workflow_id as string, 'status')).body).to.include({
      retry_of: body.workflow_id,
      status: 'failed',
    })
  })

  for (const [what, body, status, details] of [
    ['an unknown name', { workflow: 'none' }, 404, { field: 'workflow', value: 'none', reason: 'not found' }],
    ['no name', {}, 400, { required_fields: ['workflow'], provided_fields: [] }],
    ['a path outside the roots', { workflow: '../x.yaml' }, 400, { field: 'workflow' }],
    ['input that does not fit', { workflow: 'sum', input: { a: 'x' } }, 400, { field: 'input.a' }],
    ['input that is no object', { workflow: 'sum', input: [] }, 400, { field: 'input' }],
  ] as const)
    it(`refuse ${what}`, async () => {
      await using served = await serveRuns()
      const answer = await served.call('POST', `${PATH}/run`, body)
      expect([answer.status, answer.body.error_code]).to.deep.equal([
        status,
        'workflow' in body ? 'INVALID_VALUE' : 'MISSING_FIELD',
      ])
      expect(answer.body.details).to.deep.include(details)
    })
})
