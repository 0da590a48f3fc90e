import { codeOf } from '@svc/core'
import { type Json, Store, type WorkflowDefinition, WorkflowDefinitions, Workflows } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { ctx, inFolder, openEngine, quiet, ran, until, waitingRun } from './support.ts'

const paid: WorkflowDefinition = {
  name: 'paid',
  inputs: { type: 'object', properties: { who: { type: 'string' } } },
  signals: {
    paid: {
      type: 'object',
      properties: { amount: { type: 'number', minimum: 1 }, unit: { type: 'string', default: 'EUR' } },
      required: ['amount'],
    },
    never: false,
  },
  queries: {
    progress: {
      description: 'What is done',
      value: { done: '${{ state.completed_nodes }}', at: '${{ state.waiting[0].node }}' },
    },
    offer: { value: '${{ nodes.offer.price * 2.0 }}' },
    each: { value: '${{ steps["all/1/do"] }}' },
    later: { value: '${{ nodes.done }}' },
    soft: { value: '${{ nodes.?done.orValue("not yet") }}' },
  },
  nodes: {
    offer: { type: 'transform', value: { price: 21 }, next: 'all' },
    all: { type: 'map', over: '[1, 2]', do: { type: 'transform', value: '${{ item }}' }, next: 'wait' },
    wait: { type: 'wait', event: 'paid', next: 'done' },
    done: { type: 'transform', value: '${{ nodes.wait.data }}' },
  },
}

const detailsOf = (error: unknown) => (error as { details: { field: string; reason: string; allowed?: unknown } }).details

describe('signals of a definition', () => {
  it('wake a run with data that matches their schema, and its defaults', async () => {
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const id = await waitingRun(host, paid)
    const bad = (name: string, data: never) => workflows.signal(id, { name, data }, ctx).then(() => undefined, detailsOf)
    expect(await bad('paid', { amount: 0 } as never)).to.include({ field: 'data.amount' })
    expect(await bad('paid', null as never)).to.include({ field: 'data' })
    expect(await bad('payed', { amount: 2 } as never)).to.deep.include({ field: 'name', allowed: ['paid', 'never'] })
    expect(await bad('never', 1 as never)).to.include({ field: 'data', reason: 'is not accepted' })
    expect(await bad('constructor', 1 as never)).to.include({ field: 'name' })
    expect((await workflows.get(id, ctx)).status).to.equal('running')
    expect((await host.service(Store).range('workflow_inbox', { limit: 5 }, ctx)).records).to.deep.equal([])
    await workflows.signal(id, { name: 'paid', data: { amount: 2 } }, ctx)
    const run = await workflows.settled(id, 10_000, ctx)
    expect(run).to.deep.include({ status: 'completed', result: { amount: 2, unit: 'EUR' } })
  })

  it('are bounded in the inbox of a paused run, by number and by size, and are all taken when it is resumed', async () => {
    await using host = await openEngine()
    const workflows = host.service(Workflows)
    const free: WorkflowDefinition = {
      name: 'free',
      nodes: { w: { type: 'wait', event: 'go', next: 'x' }, x: { type: 'wait', event: 'end' } },
    }
    const paused = async () => {
      const id = await waitingRun(host, free)
      await workflows.pause(id, ctx)
      return id
    }
    const send = (id: string, data: Json, name = 'go') => workflows.signal(id, { name, data }, ctx)
    const many = await paused()
    const letter = (at: number) => ({ kind: 'event', name: 'go', data: at, at: Date.now() })
    const key = (at: number) => `${many}/e/0-${String(at).padStart(12, '0')}-0`
    const puts = Array.from({ length: 998 }, (_, at) => ({
      op: 'put' as const,
      collection: 'workflow_inbox',
      key: key(at),
      value: letter(at),
    }))
    await host.service(Store).batch(puts, {}, ctx)
    await send(many, 'last but one')
    await send(many, 'last')
    const refused = await send(many, 'more').then(
      () => undefined,
      (error: unknown) => error
    )
    expect(codeOf(refused)).to.equal('RUN_INBOX_FULL')
    expect((refused as { hint: string }).hint).to.match(/^Resume the run/)
    expect(detailsOf(refused)).to.include({ field: 'name', reason: 'the inbox of the run is full' })
    const large = await paused()
    const text = 'x'.repeat(1_000_000)
    for (let at = 0; at < 9; at++) await send(large, text)
    expect(await send(large, 'more').then(() => undefined, codeOf)).to.equal('RUN_INBOX_FULL')
    // other runs are not concerned, and it goes on
    await send(await paused(), 1)
    await workflows.resume(large, ctx)
    await until(async () => (await workflows.get(large, ctx)).waiting[0]?.node === 'x')
    await until(
      async () =>
        (await host.service(Store).range('workflow_inbox', { from: `${large}/`, to: `${large}0`, limit: 1 }, ctx)).records
          .length === 0
    )
    await send(large, 'now', 'end')
    expect((await workflows.settled(large, 10_000, ctx)).status).to.equal('completed')
  }).timeout(60_000)

  it('stay free without a declaration', async () => {
    await using host = await openEngine()
    const id = await waitingRun(host, { name: 'free', nodes: { w: { type: 'wait', event: 'go' } } })
    await host.service(Workflows).signal(id, { name: 'other', data: [1] }, ctx)
    await host.service(Workflows).signal(id, { name: 'go', data: 'x' }, ctx)
    expect((await host.service(Workflows).settled(id, 10_000, ctx)).status).to.equal('completed')
    expect(await host.service(Workflows).interface(id, ctx)).to.deep.equal({ queries: {} })
  })

  it('of a subworkflow are accepted, too', async () => {
    const inner: WorkflowDefinition = {
      name: 'inner',
      signals: { deep: { type: 'integer' } },
      nodes: { w: { type: 'wait', event: 'deep' } },
    }
    await using host = await openEngine({ give: [item(WorkflowDefinitions, 'inner', inner)], strict: false })
    const outer: WorkflowDefinition = {
      name: 'outer',
      signals: { stop: true },
      nodes: { go: { type: 'subworkflow', workflow: 'inner' } },
    }
    const workflows = host.service(Workflows)
    const id = await waitingRun(host, outer)
    expect((await workflows.interface(id, ctx)).signals).to.deep.equal({ stop: true, deep: { type: 'integer' } })
    expect(await workflows.signal(id, { name: 'deep', data: 'x' }, ctx).then(() => undefined, codeOf)).to.equal('INVALID_VALUE')
    await workflows.signal(id, { name: 'deep', data: 4 }, ctx)
    expect((await workflows.settled(id, 10_000, ctx)).status).to.equal('completed')
  })
})

describe('queries of a definition', () => {
  it('read outputs, steps and state of a run without changing it, before and after a restart', async () => {
    await inFolder(async folder => {
      const db = `${folder}/store.db`
      let id = ''
      {
        await using host = await openEngine({ db })
        const workflows = host.service(Workflows)
        id = await waitingRun(host, paid)
        await quiet(host)
        const state = async () => {
          const store = host.service(Store)
          return [await store.get('workflow_runs', id, ctx), await store.read('workflow_log', id, { from: 1, limit: 1_000 }, ctx)]
        }
        const before = await state()
        const query = (name: string) => workflows.query(id, name, ctx)
        expect(await query('progress')).to.deep.equal({ done: ['offer', 'all'], at: 'wait' })
        expect(await query('offer')).to.equal(42)
        expect(await query('each')).to.equal(2)
        expect(await query('soft')).to.equal('not yet')
        expect(await query('later').catch(codeOf)).to.equal('INVALID_VALUE')
        expect(await query('other').catch(codeOf)).to.equal('INVALID_VALUE')
        expect(await query('__proto__').catch(codeOf)).to.equal('INVALID_VALUE')
        expect(await state()).to.deep.equal(before)
        const stranger = testContext({ principal: { id: 'eve', scopes: ['workflows'] } })
        expect(await workflows.query(id, 'offer', stranger).catch(codeOf)).to.equal('RUN_UNKNOWN')
        expect(await workflows.interface(id, stranger).catch(codeOf)).to.equal('RUN_UNKNOWN')
        expect((await workflows.interface(id, ctx)).queries.progress).to.deep.equal({ description: 'What is done' })
      }
      await using host = await openEngine({ db })
      expect(await host.service(Workflows).query(id, 'offer', ctx)).to.equal(42)
      await host.service(Workflows).signal(id, { name: 'paid', data: { amount: 3 } }, ctx)
      await until(async () => (await host.service(Workflows).get(id, ctx)).status === 'completed')
      expect(await host.service(Workflows).query(id, 'later', ctx)).to.deep.equal({ amount: 3, unit: 'EUR' })
    })
  })

  it('cannot show a secret', async () => {
    process.env.SIGNALS_SECRET = 'very-secret-value'
    await using host = await openEngine({ config: { workflows: { secrets: { KEY: { env: 'SIGNALS_SECRET' } } } } })
    const run = await ran(host, {
      name: 'hides',
      secrets: ['KEY'],
      nodes: { a: { type: 'transform', value: 'Bearer ${{ secrets.KEY }}' } },
      queries: { a: { value: '${{ nodes.a }}' } },
    })
    expect(await host.service(Workflows).query(run.id, 'a', ctx)).to.equal('Bearer ***')
  })

  it('that would change the run, and other mistakes, are refused with their places', async () => {
    await using host = await openEngine()
    const problems = async (more: object) => {
      const text = JSON.stringify({ ...paid, ...more })
      return (await host.service(Workflows).validate({ text }, ctx)).map(({ path, message }) => `${path}: ${message}`)
    }
    expect(await problems({})).to.deep.equal([])
    const bad: readonly (readonly [object, RegExp])[] = [
      [{ queries: { a: { type: 'http', url: 'https://example.com' } } }, /^queries\.a\.type: would change the run/],
      [{ queries: { a: { value: 1, do: { type: 'transform', value: 1 } } } }, /^queries\.a\.do: would change the run/],
      [{ queries: { a: { value: 1, nodes: {} } } }, /^queries\.a\.nodes: would change the run/],
      [{ queries: { a: {} } }, /^queries\.a\.value: /],
      [{ queries: { a: { value: '${{ nodes.none }}' } } }, /^queries\.a\.value: node "none" does not exist/],
      [{ queries: { a: { value: '${{ secrets.KEY }}' } } }, /^queries\.a\.value: unknown variable "secrets"/],
      [{ queries: { a: { value: '${{ state.other }}' } } }, /^queries\.a\.value: "state" has no "other"/],
      [{ queries: { 'a-b': { value: 1 } } }, /^queries\.a-b: "a-b" is not a valid name/],
      [{ queries: [] }, /^queries: /],
      [{ signals: { go: { type: 'nothing' } } }, /^signals\.go\.type: /],
      [{ signals: { 'no name': true } }, /^signals/],
      [{ signals: { go: true } }, /^nodes\.wait\.event: the event "paid" is not in signals/],
    ]
    for (const [more, expected] of bad)
      expect(
        (await problems(more)).some(line => expected.test(line)),
        `${JSON.stringify(more)}: ${(await problems(more)).join('; ')}`
      ).to.equal(true)
  })
})
