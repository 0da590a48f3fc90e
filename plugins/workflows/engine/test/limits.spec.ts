import { readFile } from 'node:fs/promises'
import { codeOf, svcError } from '@svc/core'
import { Store, type WorkflowDefinition, Workflows } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { inFolder, node, openEngine, quiet, ran, ctx, waitingRun } from './support.ts'

const ASKS: WorkflowDefinition = { name: 'asks', nodes: { ask: { type: 'human', message: 'May I?' } } }
/** Works until its signal aborts, and tells what with. */
const endless = (ended: (reason: unknown) => void, begun: () => void = () => {}) =>
  node(async function* (_task, { signal }) {
    begun()
    await new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    ).catch(error => {
      ended(error)
      throw error
    })
    yield { type: 'output', output: null }
  })

const failure = (work: Promise<unknown>) => work.then(() => undefined, codeOf)

describe('limits of runs', () => {
  it('ends a node that takes too long, and tells it by its signal', async () => {
    const ended = Promise.withResolvers<unknown>()
    await using host = await openEngine({ nodes: { endless: endless(ended.resolve) } })
    const run = await ran(host, { name: 'late', nodes: { slow: { type: 'endless', timeout: '20ms' } } })
    expect(run).to.deep.include({ status: 'failed' })
    expect(run.error).to.include({ code: 'NODE_TIMEOUT' })
    expect(codeOf(await ended.promise)).to.equal('NODE_TIMEOUT')
  })

  it('ends a run that works for too long', async () => {
    await using host = await openEngine({ nodes: { endless: endless(() => {}) } })
    const run = await ran(host, { name: 'late', timeout: '30ms', nodes: { slow: { type: 'endless' } } })
    expect(run.error).to.include({ code: 'RUN_TIMEOUT' })
  })

  it('reaches a running node with a cancel, and the run has failed with it', async () => {
    const [ended, begun] = [Promise.withResolvers<unknown>(), Promise.withResolvers<void>()]
    await using host = await openEngine({ nodes: { endless: endless(ended.resolve, begun.resolve) } })
    const service = host.service(Workflows)
    const { id } = await service.start({ workflow: { name: 'slow', nodes: { slow: { type: 'endless' } } } }, ctx)
    await begun.promise
    const run = await service.cancel(id, ctx)
    expect(run.error).to.include({ code: 'CANCELLED', message: 'cancelled' })
    expect(codeOf(await ended.promise)).to.equal('CANCELLED')
    expect(await failure(service.cancel(id, ctx))).to.equal('INVALID_VALUE')
    expect((await service.steps(id, ctx)).map(({ status }) => status)).to.deep.equal(['cancelled'])
  })

  it('ends a node whose children take too long, as often as it is tried, and what they wait for is asked no more', async () => {
    await using host = await openEngine({ nodes: { endless: endless(() => {}) } })
    const service = host.service(Workflows)
    const bodies = { slow: { type: 'endless' }, asks: { type: 'human', message: '?' } }
    const both = { type: 'parallel', bodies, timeout: '100ms', retry: { attempts: 2, delay: '1ms' }, catch: 'asks' }
    const late: WorkflowDefinition = { name: 'late', nodes: { both, asks: { type: 'human', message: '${{ error.code }}' } } }
    const { id } = await service.start({ workflow: late }, ctx)
    for await (const { type, step } of service.events(id, 0, ctx)) if (type === 'node_waiting' && step === 'asks') break
    const { waiting } = await service.get(id, ctx)
    expect(waiting.map(({ step, ask }) => [step, ask?.message])).to.deep.equal([['asks', 'NODE_TIMEOUT']])
    const [tried] = await service.steps(id, ctx)
    expect(tried).to.deep.include({ step: 'both', status: 'failed', attempts: 2 })
    await service.cancel(id, ctx)
  })

  it('does not count against the time of a run, or of a node, what it or its children wait for while it sleeps', async () => {
    await using host = await openEngine()
    const [workflows, store] = [host.service(Workflows), host.service(Store)]
    const asks = { type: 'human', message: '?' }
    const both = { type: 'parallel', bodies: { asks, too: asks }, timeout: '1m' }
    const id = await waitingRun(host, { name: 'patient', timeout: '1m', nodes: { both } })
    await quiet(host)
    const entries = await store.read('workflow_log', id, { limit: 100 }, ctx)
    // as if all that had been an hour ago
    const before = entries.map(({ value }) => ({ ...(value as object), at: (value as { at: number }).at - 3_600_000 }))
    const rewritten = { op: 'append', log: 'workflow_log', id, values: before } as const
    await store.batch([{ op: 'drop', log: 'workflow_log', id }, rewritten], {}, ctx)
    for (const step of ['both/asks/do', 'both/too/do']) await workflows.answer(id, { step, value: true }, ctx)
    expect((await workflows.settled(id, 10_000, ctx)).error).to.equal(undefined)
  })

  it('cancels a run that waits', async () => {
    await using host = await openEngine()
    const id = await waitingRun(host, ASKS)
    expect((await host.service(Workflows).cancel(id, ctx)).error).to.include({ code: 'CANCELLED' })
  })

  it('cancels a run that waits for a place of its group at once', async () => {
    const begun = Promise.withResolvers<void>()
    await using host = await openEngine({ nodes: { endless: endless(() => {}, begun.resolve) } })
    const service = host.service(Workflows)
    const workflow: WorkflowDefinition = { name: 'alone', concurrency: 1, nodes: { slow: { type: 'endless' } } }
    const first = await service.start({ workflow }, ctx)
    await begun.promise
    const second = await service.start({ workflow }, ctx)
    expect((await service.cancel(second.id, ctx)).error).to.include({ code: 'CANCELLED' })
    expect((await service.get(first.id, ctx)).status).to.equal('running')
    await service.cancel(first.id, ctx)
  })

  it('takes one answer to a question, and none where nothing is asked', async () => {
    await using host = await openEngine()
    const service = host.service(Workflows)
    const id = await waitingRun(host, ASKS)
    expect(await failure(service.answer(id, { step: 'other', value: true }, ctx))).to.equal('INVALID_VALUE')
    expect(await failure(service.answer(id, { step: 'ask', value: 'yes' }, ctx))).to.equal('INVALID_VALUE')
    const answers = await Promise.all([1, 2, 3].map(() => failure(service.answer(id, { step: 'ask', value: true }, ctx))))
    expect(answers.filter(code => code === undefined)).to.have.length(1)
    const run = await service.settled(id, 5_000, ctx)
    expect(run.result).to.deep.equal({ answer: true, timed_out: false })
    expect(await failure(service.answer(id, { step: 'ask', value: true }, ctx))).to.equal('INVALID_VALUE')
  })

  it('takes the words of its branches for the answer to an approval, and for that alone', async () => {
    await using host = await openEngine()
    const service = host.service(Workflows)
    const answered = async (kind: string, value: string) => {
      const branches = Object.fromEntries(
        (kind === 'approval' ? ['approved', 'rejected'] : ['answered']).map(item => [item, 'end'])
      )
      const id = await waitingRun(host, { name: 'asks', nodes: { ask: { type: 'human', kind, message: '?', branches } } })
      await service.answer(id, { step: 'ask', value }, ctx)
      return (await service.settled(id, 5_000, ctx)).result
    }
    expect(await answered('approval', 'approved')).to.deep.equal({ answer: true, timed_out: false })
    expect(await answered('approval', 'rejected')).to.deep.equal({ answer: false, timed_out: false })
    expect(await answered('input', 'rejected')).to.deep.equal({ answer: 'rejected', timed_out: false })
  })

  it('keeps runs of other principals apart, in the words of an unknown one', async () => {
    await using host = await openEngine()
    const service = host.service(Workflows)
    const id = await waitingRun(host, ASKS)
    const other = testContext({ principal: { id: 'other', scopes: ['workflows'] } })
    const calls = [
      service.get(id, other),
      service.steps(id, other),
      service.cancel(id, other),
      service.retry(id, {}, other),
      service.settled(id, 0, other),
    ]
    expect(await Promise.all(calls.map(failure))).to.deep.equal(Array(5).fill('RUN_UNKNOWN'))
    expect(await failure(service.get('nobody', ctx))).to.equal('RUN_UNKNOWN')
    expect((await service.runs({ limit: 10 }, other)).runs).to.deep.equal([])
    await service.cancel(id, ctx)
  })

  it('refuses results of 20 MB, with the node that answered them', async () => {
    const big = node(async function* () {
      yield { type: 'output', output: 'x'.repeat(20_000_000) }
    })
    await using host = await openEngine({ nodes: { big } })
    const run = await ran(host, { name: 'large', nodes: { much: { type: 'big' } } })
    expect(run.error).to.include({ code: 'RESULT_TOO_LARGE' })
    expect(run.error!.message).to.contain('"much"')
  })

  it('does not leave a run running whose outputs together are more than the store takes at once', async () => {
    const big = node(async function* () {
      yield { type: 'output', output: 'x'.repeat(4_000_000) }
    })
    await using host = await openEngine({ nodes: { big } })
    const parts = Object.fromEntries(
      [1, 2, 3, 4, 5].map(at => [`n${at}`, { type: 'big', next: at === 5 ? 'sum' : `n${at + 1}` }])
    )
    const all = [1, 2, 3, 4, 5].map(at => '${{ nodes.n1 }}'.replace('1', String(at)))
    const run = await ran(host, { name: 'sums', nodes: { ...parts, sum: { type: 'transform', value: all } } })
    expect(run).to.deep.include({ status: 'failed' })
    expect(run.error).to.include({ code: 'RESULT_TOO_LARGE' })
  })

  it('keeps the values of secrets out of everything that is stored or shown', () =>
    inFolder(async folder => {
      const value = 'extremely-secret-1234'
      const key = `SVC_TEST_${crypto.randomUUID().replaceAll('-', '')}`
      process.env[key] = value
      const seen: unknown[] = []
      const echo = node(async function* ({ settings }) {
        seen.push(settings.token)
        yield { type: 'progress', message: `with ${settings.token as string}` }
        if (settings.fails === true) throw svcError('ECHO_FAILED', `not with ${settings.token as string}`)
        yield { type: 'output', output: { got: settings.token ?? null } }
      })
      const db = `${folder}/svc.db`
      try {
        await using host = await openEngine({ db, nodes: { echo }, config: { workflows: { secrets: { TOKEN: { env: key } } } } })
        const token = '${{ secrets.TOKEN }}'
        const each = { type: 'map', over: '[1, 2]', do: { nodes: { x: { type: 'echo', token } }, result: token } }
        const run = await ran(host, {
          name: 'hides',
          secrets: ['TOKEN'],
          nodes: {
            one: { type: 'echo', token, next: 'each' },
            each: { ...each, next: 'bad' },
            bad: { type: 'echo', token, fails: true },
          },
          result: token,
        })
        expect(seen).to.deep.equal([value, value, value, value])
        expect(JSON.stringify([run, await host.service(Workflows).steps(run.id, ctx)])).not.to.contain(value)
        expect(run.error!.message).to.contain('***')
      } finally {
        delete process.env[key]
      }
      for (const file of [db, `${db}-wal`])
        expect((await readFile(file).catch(() => Buffer.from(''))).includes(value)).to.equal(false)
    }))

  it('answers a second start with the same key with the first run, also at the same moment', async () => {
    await using host = await openEngine()
    const service = host.service(Workflows)
    const workflow: WorkflowDefinition = { name: 'once', nodes: { a: { type: 'transform', value: 1 } } }
    const starts = await Promise.all([1, 2, 3].map(() => service.start({ workflow, idempotencyKey: 'k' }, ctx)))
    expect(new Set(starts.map(({ id }) => id)).size).to.equal(1)
    expect((await service.runs({ limit: 10 }, ctx)).runs).to.have.length(1)
  })

  it('runs 10,000 nodes, one after the other and over a list', async () => {
    await using host = await openEngine({ strict: false })
    const nodes = Object.fromEntries(
      Array.from({ length: 2_000 }, (_, at) => [
        `n${at}`,
        { type: 'transform', value: at, ...(at < 1_999 ? { next: `n${at + 1}` } : {}) },
      ])
    )
    const line = await ran(host, { name: 'line', nodes })
    expect(line).to.include({ status: 'completed', result: 1_999 })
    const list = Array.from({ length: 8_000 }, (_, at) => at)
    const many = await ran(
      host,
      {
        name: 'many',
        nodes: { each: { type: 'map', over: 'input.list', width: 200, do: { type: 'transform', value: '${{ item }}' } } },
        result: '${{ nodes.each.size() }}',
      },
      { input: { list } }
    )
    expect(many.error).to.equal(undefined)
    expect(many).to.include({ status: 'completed', result: 8_000 })
  }).timeout(60_000)
})
