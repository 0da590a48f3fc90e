import { svcError } from '@svc/core'
import { type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { expect } from 'chai'
import { inFolder, node, openEngine, ran, ctx, waitingRun } from './support.ts'

/** Nodes that write down what was done. */
function notebook() {
  const done: string[] = []
  const write = node(async function* ({ settings, step }) {
    done.push((settings.says as string | undefined) ?? step)
    if (settings.fails === true) throw svcError('TOLD_TO', 'as it was told')
    yield { type: 'spent', tool_calls: 1 }
    yield { type: 'output', output: settings.says ?? step }
  })
  return { done, nodes: { write } }
}
const write = (says: string, more: object = {}) => ({ type: 'write', says, ...more })

describe('runs that last', () => {
  it('go on after a restart behind what was done, with the definition they began with', () =>
    inFolder(async folder => {
      const { done, nodes } = notebook()
      const db = `${folder}/svc.db`
      const workflow: WorkflowDefinition = {
        name: 'steps',
        nodes: { one: write('one', { next: 'ask' }), ask: { type: 'human', message: '?', next: 'two' }, two: write('two') },
      }
      let id: string
      {
        await using host = await openEngine({ db, nodes })
        id = await waitingRun(host, workflow)
      }
      await using host = await openEngine({ db, nodes })
      const service = host.service(Workflows)
      expect((await service.get(id, ctx)).waiting.map(({ step }) => step)).to.deep.equal(['ask'])
      await service.answer(id, { step: 'ask', value: true }, ctx)
      expect(await service.settled(id, 10_000, ctx)).to.include({ status: 'completed', result: 'two' })
      expect(done).to.deep.equal(['one', 'two'])
    }))

  it('undo what was done within lists too, the last first, also after a restart', () =>
    inFolder(async folder => {
      const { done, nodes } = notebook()
      const db = `${folder}/svc.db`
      const undo = write('undo ${{ output }}')
      const workflow: WorkflowDefinition = {
        name: 'undoes',
        nodes: {
          each: {
            type: 'map',
            over: '[1, 2]',
            width: 1,
            do: { nodes: { book: write('book ${{ item }}', { compensate: undo }) } },
            next: 'ask',
          },
          ask: { type: 'human', message: '?', next: 'one' },
          one: write('one', { compensate: undo, next: 'bad' }),
          bad: write('bad', { fails: true }),
        },
      }
      let id: string
      {
        await using host = await openEngine({ db, nodes })
        id = await waitingRun(host, workflow)
      }
      await using host = await openEngine({ db, nodes })
      const service = host.service(Workflows)
      await service.answer(id, { step: 'ask', value: true }, ctx)
      expect((await service.settled(id, 10_000, ctx)).error).to.include({ code: 'TOLD_TO' })
      expect(done).to.deep.equal(['book 1', 'book 2', 'one', 'bad', 'undo one', 'undo book 2', 'undo book 1'])
      // what was undone is done again
      expect((await service.retry(id, {}, ctx)).completedNodes).to.deep.equal([])
    }))

  it('have spent after a restart what they had spent before, also in lists', () =>
    inFolder(async folder => {
      const left = node(async function* ({ allowance }) {
        yield { type: 'output', output: { ...allowance } }
      })
      const options = { db: `${folder}/svc.db`, nodes: { ...notebook().nodes, left } }
      const each = { type: 'map', over: '[1, 2]', do: write('each'), next: 'ask' }
      const ask = { type: 'human', message: '?', next: 'left' }
      const nodes = { one: write('one', { next: 'each' }), each, ask, left: { type: 'left' } }
      let id: string
      {
        await using host = await openEngine(options)
        id = await waitingRun(host, { name: 'spends', budget: { tool_calls: 5, tokens: 7 }, nodes })
      }
      await using host = await openEngine(options)
      const service = host.service(Workflows)
      await service.answer(id, { step: 'ask', value: true }, ctx)
      expect((await service.settled(id, 10_000, ctx)).result).to.deep.equal({ tool_calls: 2, tokens: 7 })
    }))

  it('retry from what failed, with what was done taken over', async () => {
    let isBroken = true
    const { done, nodes } = notebook()
    const flaky = node(async function* ({ step, idempotencyKey }) {
      done.push(`${step} ${idempotencyKey.split(':')[0]}`)
      if (isBroken) throw svcError('BROKEN', 'not yet')
      yield { type: 'output', output: 'fixed' }
    })
    await using host = await openEngine({ nodes: { ...nodes, flaky } })
    const service = host.service(Workflows)
    const failed = await ran(host, { name: 'fixes', nodes: { one: write('one', { next: 'two' }), two: { type: 'flaky' } } })
    expect(failed).to.deep.include({ status: 'failed', completedNodes: ['one'], progress: 0.5 })
    isBroken = false
    const { id } = await service.retry(failed.id, {}, ctx)
    expect(await service.settled(id, 10_000, ctx)).to.include({ status: 'completed', result: 'fixed', retryOf: failed.id })
    expect(done).to.deep.equal(['one', `two ${failed.id}`, `two ${failed.id}`])
  })

  it('try a list again with what has failed in it alone', async () => {
    let failures = 1
    const { done, nodes } = notebook()
    const flaky = node(async function* ({ step, settings }) {
      done.push(step)
      if (settings.at === 2 && failures-- > 0) throw svcError('BROKEN', 'once')
      yield { type: 'output', output: settings.at ?? null }
    })
    await using host = await openEngine({ nodes: { ...nodes, flaky } })
    const each = {
      type: 'map',
      over: '[1, 2]',
      width: 1,
      retry: { attempts: 2, delay: '1ms' },
      do: { type: 'flaky', at: '${{ item }}' },
    }
    const run = await ran(host, { name: 'again', nodes: { each } })
    expect(run).to.deep.include({ status: 'completed', result: [1, 2] })
    expect(done).to.deep.equal(['each/0/do', 'each/1/do', 'each/1/do'])
  })

  it('hand an event to all who wait for it, and keep one for who does not wait yet', async () => {
    await using host = await openEngine()
    const service = host.service(Workflows)
    const waits = { type: 'wait', event: 'go' }
    const id = await waitingRun(host, {
      name: 'events',
      nodes: {
        both: { type: 'parallel', bodies: { a: waits, b: waits }, next: 'later' },
        later: { type: 'wait', event: 'later' },
      },
    })
    await service.signal(id, { name: 'later', data: 2 }, ctx)
    while ((await service.get(id, ctx)).waiting.length < 2);
    await service.signal(id, { name: 'go', data: 1 }, ctx)
    const run = await service.settled(id, 10_000, ctx)
    expect(run).to.deep.include({ status: 'completed', result: { by: 'event', data: 2 } })
    const steps = await service.steps(id, ctx)
    expect(steps.find(({ step }) => step === 'both')!.output).to.deep.equal({
      a: { by: 'event', data: 1 },
      b: { by: 'event', data: 1 },
    })
  })

  it('hand on events of one name in the order in which they were sent', async () => {
    await using host = await openEngine()
    const service = host.service(Workflows)
    const [last, reported] = [39, [] as number[]]
    const wait = { type: 'wait', event: 'go', next: 'tell' }
    const body = { nodes: { wait, tell: { type: 'transform', value: '${{ nodes.wait.data }}' } } }
    const { id } = await service.start(
      { workflow: { name: 'ordered', nodes: { each: { type: 'loop', until: `last == ${last}`, max: 100, do: body } } } },
      ctx
    )
    for (let data = 0; data <= last; data++) await service.signal(id, { name: 'go', data }, ctx)
    expect(await service.settled(id, 10_000, ctx)).to.include({ status: 'completed' })
    for (const { node: name, output } of await service.steps(id, ctx)) if (name === 'tell') reported.push(output as number)
    expect(reported).to.deep.equal(Array.from({ length: last + 1 }, (_, at) => at))
  })

  it('drain: a node that runs ends here, and the run goes on elsewhere', () =>
    inFolder(async folder => {
      const db = `${folder}/svc.db`
      const [begun, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const { done, nodes } = notebook()
      const slow = node(async function* ({ step }) {
        begun.resolve()
        await end.promise
        done.push(step)
        yield { type: 'output', output: step }
      })
      const bodies = {
        slow: { nodes: { slow: { type: 'slow', next: 'after' }, after: write('after') } },
        asks: { type: 'human', message: '?' },
      }
      let id: string
      {
        const host = await openEngine({ db, nodes: { ...nodes, slow } })
        id = (
          await host
            .service(Workflows)
            .start({ workflow: { name: 'drains', nodes: { both: { type: 'parallel', join: 'any', bodies } } } }, ctx)
        ).id
        await begun.promise
        const closed = host.close()
        end.resolve()
        await closed
        expect(done).to.deep.equal(['both/slow/slow'])
      }
      await using host = await openEngine({ db, nodes: { ...nodes, slow } })
      const run = await host.service(Workflows).settled(id, 10_000, ctx)
      expect(run).to.deep.include({ status: 'completed', result: { slow: 'after' } })
      expect(done).to.deep.equal(['both/slow/slow', 'after'])
    }))
})
