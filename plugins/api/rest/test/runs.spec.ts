import type { ServerEvent } from '@svc/provider-http/sse'
import { expect } from 'chai'
import { PATH, serveRuns, until } from './support/runs.ts'

const typesOf = (events: readonly ServerEvent[]) => events.map(({ event }) => event)

describe('runs', () => {
  it('that are unknown get 404 in every route', async () => {
    await using served = await serveRuns()
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
    await using served = await serveRuns()
    const ids = []
    for (const name of ['plain', 'fail', 'plain']) ids.unshift((await served.begin(name, {})).workflow_id)
    const page = (await served.call('GET', `${PATH}/runs?limit=2`)).body
    const rest = (await served.call('GET', `${PATH}/runs?limit=2&cursor=${encodeURIComponent(page.next_cursor as string)}`)).body
    const idsOf = ({ runs }: typeof page) => (runs as { workflow_id: string }[]).map(run => run.workflow_id)
    expect([...idsOf(page), ...idsOf(rest)]).to.deep.equal(ids)
    expect(rest.next_cursor).to.equal(null)
    expect(idsOf((await served.call('GET', `${PATH}/runs?status=failed`)).body)).to.deep.equal([ids[1]])
    expect(idsOf((await served.call('GET', `${PATH}/runs?workflow=plain`)).body)).to.deep.equal([ids[0], ids[2]])
    expect((await served.call('GET', `${PATH}/runs?status=waiting`)).status).to.equal(400)
  })

  it('list each step with its input and output', async () => {
    await using served = await serveRuns()
    const { workflow_id } = await served.begin('sum', {}, { input: { a: 1 } })
    const { steps } = (await served.of(workflow_id, 'steps')).body
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
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    const events = served.watch(id)
    await until(events, 'node_waiting')
    const answer = (body: object) => served.send(id, 'answer', body as never)
    expect((await answer({ step: 'tell', value: true })).body.details).to.include({
      field: 'step',
      reason: 'waits for no answer',
    })
    expect((await answer({ step: 'ask', value: 'yes' })).body.details).to.include({
      field: 'value',
      reason: 'must be true or false, or "approved" or "rejected"',
    })
    expect((await answer({ step: 'ask', value: 'approved' })).body).to.deep.equal({ success: true })
    const ended = await until(events, 'run_completed')
    expect(JSON.parse(ended.at(-1)!.data)).to.deep.include({ type: 'run_completed', workflow_id: id, result: { told: true } })
    expect((await answer({ step: 'ask', value: true })).status).to.equal(400)
  })

  it('go on with an event of the name that they wait for', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('listen')
    await until(served.watch(id), 'node_waiting')
    const sent = await served.send(id, 'events', { name: 'paid', data: { euro: 3 } })
    expect(sent.body).to.deep.equal({ success: true })
    await until(served.watch(id), 'run_completed')
    expect((await served.of(id, 'status')).body.result).to.deep.equal({ euro: 3 })
    expect((await served.send(id, 'events', { name: 'paid' })).status).to.equal(400)
  })

  it('that are cancelled have failed with "cancelled"; what has ended is not cancelled', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    await until(served.watch(id), 'node_waiting')
    const { body } = await served.send(id, 'cancel')
    expect(body).to.include({ status: 'failed', error: 'cancelled', result: null })
    const again = await served.send(id, 'cancel')
    expect([again.status, again.body.error_code]).to.deep.equal([400, 'INVALID_VALUE'])
  })
})

describe('the events of a run', () => {
  it('are sent from the beginning, with ids for reconnecting; progress has no id', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    const first = served.watch(id)
    const before = await until(first, 'node_waiting')
    expect(typesOf(before)).to.deep.equal(['run_started', 'node_started', 'node_waiting'])
    await served.send(id, 'answer', { step: 'ask', value: true })
    const rest = await until(first, 'run_completed')
    expect(rest.find(item => item.event === 'node_progress')).to.not.have.property('id')
    const back = await until(served.watch(id, before.at(-1)!.id!), 'run_completed')
    const stored = rest.filter(item => item.id !== undefined)
    expect(back).to.deep.equal(stored)
    expect(stored.map(item => Number(item.id))).to.deep.equal(stored.map(item => Number(item.id)).toSorted((a, b) => a - b))
    expect(await Array.fromAsync(served.watch(id, stored.at(-1)!.id!))).to.deep.equal([])
  })

  it('begin at once, however long nothing happens', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    await until(served.watch(id), 'node_waiting')
    const answer = await fetch(`${served.url}${PATH}/${id}/events?after=1000`)
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'text/event-stream'])
    await answer.body?.cancel()
  })

  it('refuse an id that is none', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    const { status, body } = await served.of(id, 'events', { 'last-event-id': 'x' })
    expect([status, body.details]).to.deep.equal([
      400,
      { field: 'Last-Event-ID', value: 'x', reason: 'must be the id of an event' },
    ])
  })

  it('end when the server stops, with the time to reconnect', async () => {
    const served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    await until(served.watch(id), 'node_waiting')
    const open = await fetch(`${served.url}${PATH}/${id}/events?after=1000`)
    const [text] = await Promise.all([open.text(), served.host.close()])
    expect(text).to.match(/^:\n\nretry: \d+\n\n$/)
  })

  it('are sent to every connected client', async () => {
    await using served = await serveRuns()
    const { workflow_id: id } = await served.begin('ask')
    const all = Array.from({ length: 30 }, () => served.watch(id))
    await Promise.all(all.map(item => until(item, 'node_waiting')))
    await served.send(id, 'answer', { step: 'ask', value: true })
    const ends = await Promise.all(all.map(item => until(item, 'run_completed')))
    expect(new Set(ends.map(end => JSON.stringify(end.filter(({ id: known }) => known !== undefined)))).size).to.equal(1)
  })
})
