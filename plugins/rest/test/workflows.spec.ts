import { readEvents, type ServerEvent } from '@svc/sse'
import { expect } from 'chai'
import { WITH_WORKFLOWS } from './support/asking.ts'
import { serveRest } from './support/house.ts'

type Served = Awaited<ReturnType<typeof serveRest>>

const PATH = '/api/v1/workflows'
const serve = (config = {}) => serveRest({ ...WITH_WORKFLOWS, config })
const begin = async ({ call }: Served, workflow: string, headers: Record<string, string> = { prefer: 'respond-async' }) =>
  (await call('POST', `${PATH}/run`, { workflow }, headers)).body
const statusOf = async ({ call }: Served, id: unknown) => (await call('GET', `${PATH}/${String(id)}/status`)).body

/** The stream of a run, from the event after this one on. */
async function* watch({ url }: Served, id: unknown, { after, signal }: { after?: string; signal?: AbortSignal } = {}) {
  const answer = await fetch(`${url}${PATH}/${String(id)}/events`, {
    headers: after === undefined ? {} : { 'last-event-id': after },
    ...(signal ? { signal } : {}),
  })
  yield* readEvents(answer.body as AsyncIterable<Uint8Array>)
}
async function until(events: AsyncIterator<ServerEvent>, type: string): Promise<ServerEvent[]> {
  const seen: ServerEvent[] = []
  while (seen.at(-1)?.event !== type) {
    const { value, done } = await events.next()
    if (done) throw new Error(`the stream ended before ${type}: ${JSON.stringify(seen)}`)
    seen.push(value)
  }
  return seen
}
const typesOf = (events: readonly ServerEvent[]) => events.map(({ event }) => event)

describe('workflows', () => {
  it('have no routes where there is no engine', async () => {
    await using served = await serveRest()
    const { status, body } = await served.call('GET', PATH)
    expect([status, body.error_code]).to.deep.equal([404, 'NOT_FOUND'])
  })

  it('are listed and shown', async () => {
    await using served = await serve()
    const { body } = await served.call('GET', PATH)
    const sum = { name: 'sum', description: 'Adds', version: '2', nodes: 1, problems: [] }
    expect((body.workflows as object[]).find(one => (one as { name: string }).name === 'sum')).to.include({
      name: 'sum',
      nodes: 1,
    })
    const shown = await served.call('GET', `${PATH}/definition?workflow=sum`)
    expect(shown.body.workflow).to.deep.include(sum)
    expect(shown.body.definition).to.have.nested.property('nodes.add.type', 'transform')
  })

  it('that end while the request waits are answered with their result', async () => {
    await using served = await serve()
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
    await using served = await serve()
    const { result, workflow_id } = await begin(served, 'plain', {})
    expect(result).to.deep.equal({ value: 7 })
    expect((await statusOf(served, workflow_id)).result).to.deep.equal({ value: 7 })
  })

  it('go on in the background where they take longer, and say what they wait for', async () => {
    await using served = await serve({ workflows: { sync_wait_ms: 1 } })
    const body = await begin(served, 'ask', {})
    expect(body).to.include({ success: true, status: 'running', status_url: `${PATH}/${String(body.workflow_id)}/status` })
    expect(body.message).to.be.a('string')
    const events = watch(served, body.workflow_id)
    await until(events, 'node_waiting')
    const status = await statusOf(served, body.workflow_id)
    expect(status).to.include({ workflow: 'ask', status: 'running', current_node: 'ask', progress: 0, result: null, error: null })
    expect(status.waiting_for).to.have.nested.property('[0].question.kind', 'approval')
    await events.return()
  })

  it('do not wait with Prefer: respond-async, and wait as long as wait=N says', async () => {
    await using served = await serve({ workflows: { sync_wait_ms: 60_000 } })
    expect((await begin(served, 'ask', { prefer: 'respond-async' })).status).to.equal('running')
    expect((await begin(served, 'ask', { prefer: 'handling=lenient, wait=0' })).status).to.equal('running')
    await using quick = await serve({ workflows: { sync_wait_ms: 0 } })
    expect((await begin(quick, 'plain', { prefer: 'respond-async; a=b, wait="30"' })).status).to.equal('completed')
  })

  it('begin once for an Idempotency-Key', async () => {
    await using served = await serve()
    const [one, again] = await Promise.all([1, 2].map(() => begin(served, 'plain', { 'idempotency-key': 'k1' })))
    expect(one?.workflow_id).to.equal(again?.workflow_id)
    expect((await begin(served, 'plain', { 'idempotency-key': 'other' })).workflow_id).to.not.equal(one?.workflow_id)
    const { body } = await served.call('POST', `${PATH}/run`, { workflow: 'plain' }, { 'idempotency-key': 'a b' })
    expect(body.details).to.deep.equal({ field: 'Idempotency-Key', value: 'a b', reason: 'must be 1 to 255 visible characters' })
  })

  it('that fail within the wait are 200 and say why', async () => {
    await using served = await serve()
    const { status, body } = await served.call('POST', `${PATH}/run`, { workflow: 'fail' })
    expect([status, body.success, body.status, body.error, body.failure_code]).to.deep.equal([
      200,
      false,
      'failed',
      'it broke',
      'BROKEN',
    ])
    const again = await served.call('POST', `${PATH}/${String(body.workflow_id)}/retry`)
    expect(again.body.workflow_id).to.not.equal(body.workflow_id)
    expect(await statusOf(served, again.body.workflow_id)).to.include({ retry_of: body.workflow_id, status: 'failed' })
  })

  for (const [what, body, status, details] of [
    ['a name that nobody has', { workflow: 'none' }, 404, { field: 'workflow', value: 'none', reason: 'not found' }],
    ['no name', {}, 400, { required_fields: ['workflow'], provided_fields: [] }],
    ['a path outside the roots', { workflow: '../x.yaml' }, 400, { field: 'workflow' }],
    ['input that does not fit', { workflow: 'sum', input: { a: 'x' } }, 400, { field: 'input.a' }],
    ['input that is no object', { workflow: 'sum', input: [] }, 400, { field: 'input' }],
  ] as const)
    it(`refuse ${what}`, async () => {
      await using served = await serve()
      const answer = await served.call('POST', `${PATH}/run`, body)
      expect([answer.status, answer.body.error_code]).to.deep.equal([
        status,
        'workflow' in body ? 'INVALID_VALUE' : 'MISSING_FIELD',
      ])
      expect(answer.body.details).to.deep.include(details)
    })
})

describe('runs', () => {
  it('that nobody knows are 404, wherever they are named', async () => {
    await using served = await serve()
    const named = [
      ['GET', 'status'],
      ['GET', 'steps'],
      ['GET', 'events'],
      ['POST', 'events', { name: 'a' }],
      ['POST', 'answer', { step: 'a', value: 1 }],
      ['POST', 'cancel'],
      ['POST', 'retry'],
    ] as const
    for (const [method, what, body] of named) {
      const answer = await served.call(method, `${PATH}/run_0/${what}`, body)
      expect([answer.status, answer.body.error_code, answer.body.details], what).to.deep.equal([
        404,
        'INVALID_VALUE',
        { field: 'workflow_id', value: 'run_0', reason: 'not found' },
      ])
    }
  })

  it('are listed newest first, by workflow and status, page by page', async () => {
    await using served = await serve()
    const ids = []
    for (const name of ['plain', 'fail', 'plain']) ids.unshift((await begin(served, name, {})).workflow_id)
    const page = (await served.call('GET', `${PATH}/runs?limit=2`)).body
    const rest = (await served.call('GET', `${PATH}/runs?limit=2&cursor=${encodeURIComponent(String(page.next_cursor))}`)).body
    const idsOf = ({ runs }: typeof page) => (runs as { workflow_id: string }[]).map(one => one.workflow_id)
    expect([...idsOf(page), ...idsOf(rest)]).to.deep.equal(ids)
    expect(rest.next_cursor).to.equal(null)
    expect(idsOf((await served.call('GET', `${PATH}/runs?status=failed`)).body)).to.deep.equal([ids[1]])
    expect(idsOf((await served.call('GET', `${PATH}/runs?workflow=plain`)).body)).to.deep.equal([ids[0], ids[2]])
    expect((await served.call('GET', `${PATH}/runs?status=waiting`)).status).to.equal(400)
  })

  it('tell each step with its input and output', async () => {
    await using served = await serve()
    const { body } = await served.call('POST', `${PATH}/run`, { workflow: 'sum', input: { a: 1 } })
    const { steps } = (await served.call('GET', `${PATH}/${String(body.workflow_id)}/steps`)).body
    expect(steps).to.have.length(1)
    expect((steps as object[])[0]).to.deep.include({
      step: 'add',
      node: 'add',
      status: 'completed',
      attempts: 1,
      output: { sum: 2 },
    })
  })

  it('go on with an answer, once, and only where one is asked for', async () => {
    await using served = await serve()
    const { workflow_id: id } = await begin(served, 'ask')
    const events = watch(served, id)
    await until(events, 'node_waiting')
    const answer = (body: object) => served.call('POST', `${PATH}/${String(id)}/answer`, body as never)
    expect((await answer({ step: 'tell', value: true })).body.details).to.include({
      field: 'step',
      reason: 'waits for no answer',
    })
    expect((await answer({ step: 'ask', value: 'yes' })).body.details).to.include({ field: 'value' })
    expect((await answer({ step: 'ask', value: true })).body).to.deep.equal({ success: true })
    const ended = await until(events, 'run_completed')
    expect(JSON.parse(ended.at(-1)!.data)).to.deep.include({ type: 'run_completed', workflow_id: id, result: { told: true } })
    expect((await answer({ step: 'ask', value: true })).status).to.equal(400)
  })

  it('go on with an event of the name that they wait for', async () => {
    await using served = await serve()
    const { workflow_id: id } = await begin(served, 'listen')
    await until(watch(served, id), 'node_waiting')
    const told = await served.call('POST', `${PATH}/${String(id)}/events`, { name: 'paid', data: { euro: 3 } })
    expect(told.body).to.deep.equal({ success: true })
    await until(watch(served, id), 'run_completed')
    expect((await statusOf(served, id)).result).to.deep.equal({ euro: 3 })
    expect((await served.call('POST', `${PATH}/${String(id)}/events`, { name: 'paid' })).status).to.equal(400)
  })

  it('that are cancelled have failed with "cancelled"; what has ended is not cancelled', async () => {
    await using served = await serve()
    const { workflow_id: id } = await begin(served, 'ask')
    await until(watch(served, id), 'node_waiting')
    const { body } = await served.call('POST', `${PATH}/${String(id)}/cancel`)
    expect(body).to.include({ status: 'failed', error: 'cancelled', result: null })
    const again = await served.call('POST', `${PATH}/${String(id)}/cancel`)
    expect([again.status, again.body.error_code]).to.deep.equal([400, 'INVALID_VALUE'])
  })
})

describe('the events of a run', () => {
  it('are told from the beginning, with ids that a reader comes back with; progress has none', async () => {
    await using served = await serve()
    const { workflow_id: id } = await begin(served, 'ask')
    const first = watch(served, id)
    const before = await until(first, 'node_waiting')
    expect(typesOf(before)).to.deep.equal(['run_started', 'node_started', 'node_waiting'])
    await served.call('POST', `${PATH}/${String(id)}/answer`, { step: 'ask', value: true })
    const rest = await until(first, 'run_completed')
    expect(rest.find(one => one.event === 'node_progress')).to.not.have.property('id')
    const back = await until(watch(served, id, { after: before.at(-1)!.id! }), 'run_completed')
    const stored = rest.filter(one => one.id !== undefined)
    expect(back).to.deep.equal(stored)
    expect(stored.map(one => Number(one.id))).to.deep.equal(stored.map(one => Number(one.id)).toSorted((a, b) => a - b))
    expect(await Array.fromAsync(watch(served, id, { after: stored.at(-1)!.id! }))).to.deep.equal([])
  })

  it('begin at once, however long nothing happens', async () => {
    await using served = await serve()
    const { workflow_id: id } = await begin(served, 'ask')
    await until(watch(served, id), 'node_waiting')
    const answer = await fetch(`${served.url}${PATH}/${String(id)}/events?after=1000`)
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'text/event-stream'])
    await answer.body?.cancel()
  })

  it('refuse an id that is none', async () => {
    await using served = await serve()
    const { workflow_id: id } = await begin(served, 'ask')
    const { status, body } = await served.call('GET', `${PATH}/${String(id)}/events`, undefined, { 'last-event-id': 'x' })
    expect([status, body.details]).to.deep.equal([
      400,
      { field: 'Last-Event-ID', value: 'x', reason: 'must be the id of an event' },
    ])
  })

  it('end when the server leaves, so that their readers go elsewhere', async () => {
    const served = await serve()
    const { workflow_id: id } = await begin(served, 'ask')
    const events = watch(served, id)
    await until(events, 'node_waiting')
    const closed = served.host.close()
    expect(await events.next()).to.deep.equal({ value: undefined, done: true })
    await closed
  })

  it('are told to as many as read along', async () => {
    await using served = await serve()
    const { workflow_id: id } = await begin(served, 'ask')
    const all = Array.from({ length: 30 }, () => watch(served, id))
    await Promise.all(all.map(one => until(one, 'node_waiting')))
    await served.call('POST', `${PATH}/${String(id)}/answer`, { step: 'ask', value: true })
    const ends = await Promise.all(all.map(one => until(one, 'run_completed')))
    expect(new Set(ends.map(one => JSON.stringify(one.filter(({ id: known }) => known !== undefined)))).size).to.equal(1)
  })
})
