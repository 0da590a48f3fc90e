import type { SvcError } from '@svc/core'
import type { ToolStep } from '@svc/core/contracts'
import type { McpClient } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { forever, hostile, steps, replyOf } from './support/client.ts'

describe('a call', () => {
  let client: McpClient
  before(() => {
    client = hostile()
  })
  after(() => client.close())

  it('answers what the tool answers', async () => {
    expect(await client.callTool('echo', { text: 'grüße' })).to.deep.equal({
      content: [{ type: 'text', text: 'grüße' }],
      error: null,
    })
  })

  it('passes on what it does not know, and data beside the text', async () => {
    const [step] = await steps(client.call('odd', {}, {}, forever()))
    expect(step).to.deep.equal({
      type: 'result',
      result: { content: [{ type: 'hologram', data: { a: [1] } }], structured: { b: 2 }, meta: { c: 3 } },
    })
    expect((await client.callTool('odd', {})).structured).to.deep.equal({ b: 2 })
  })

  it('whose tool fails says so, with what the tool said', async () => {
    expect(await client.callTool('fail', {})).to.deep.equal({
      content: [{ type: 'text', text: 'it went wrong' }],
      error: { class: 'tool_error', message: 'it went wrong' },
    })
    const [step] = await steps(client.call('fail', {}, {}, forever()))
    expect(step).to.deep.include({ type: 'result' }).and.have.nested.property('result.isError', true)
  })

  it('of a tool that is not there is tool_not_found', async () => {
    expect((await client.callTool('nothing', {})).error).to.deep.equal({
      class: 'tool_not_found',
      message: 'it has no tool "nothing"',
    })
    const error = await client.getToolSchema('nothing').catch((item: unknown) => item)
    expect(error).to.deep.include({ code: 'MCP_CALL_FAILED' })
  })

  it('ends when its time is over, and notifies the server', async () => {
    const { error } = await client.callTool('never', {}, { timeout: 0.05 })
    expect(error).to.deep.equal({ class: 'timeout', message: 'it did not answer within 0.05 s' })
    expect(await replyOf(client, 'cancelled')).to.have.length(1)
  })

  it('that is late has one class and one set of details, whichever side counts the time, and no retry: it can have run', async () => {
    const detailsOf = (how: { timeoutMs?: number }, signal: AbortSignal) =>
      steps(client.call('never', {}, how, { signal })).then(
        () => undefined,
        (error: SvcError) => error.details
      )
    const late = Object.assign(new Error('the caller waited for too long'), { code: 'TIMEOUT' })
    const deadline = new AbortController()
    setTimeout(() => deadline.abort(late), 50)
    const message = 'it did not answer within 0.05 s'
    const expected = { server: 'hostile', class: 'timeout', message, retryable: false, delivered: 'maybe' }
    expect(await detailsOf({ timeoutMs: 50 }, forever().signal)).to.deep.equal(expected)
    const inSeconds = { ...expected, message: 'it did not answer within 30 s' }
    expect(await detailsOf({}, deadline.signal)).to.deep.equal(inSeconds)
    expect(await detailsOf({}, AbortSignal.timeout(50))).to.deep.equal(inSeconds)
  })

  it('that has not reached the server can be retried, and any other not', async () => {
    await using dying = hostile({ diesEach: 1 })
    const failureOf = (mcpClient: McpClient, timeoutMs = 10_000) =>
      steps(mcpClient.call('echo', {}, { timeoutMs }, forever())).catch((error: SvcError) => error.details)
    expect(await failureOf(dying)).to.include({ class: 'connection_refused', retryable: false, delivered: 'maybe' })
    await using missing = hostile({}, { command: '/there/is/no/such/program', args: [], retryAttempts: 0 })
    expect(await failureOf(missing)).to.include({ class: 'connection_refused', retryable: true, delivered: 'no' })
    await using silent = hostile({ silent: ['server/discover', 'initialize'] }, { connectMs: 100, retryAttempts: 0 })
    expect(await failureOf(silent)).to.include({ class: 'timeout', retryable: true, delivered: 'no' })
    await using slow = hostile({ silent: ['server/discover', 'initialize'] })
    expect(await failureOf(slow, 300)).to.include({ class: 'timeout', retryable: true, delivered: 'no' })
  })

  it('ends when its caller leaves, and notifies the server', async () => {
    const leaving = new AbortController()
    const call = client.callTool('never', {}, { signal: leaving.signal })
    await replyOf(client, 'pid')
    leaving.abort()
    expect((await call).error?.class).to.equal('cancelled')
    expect(await replyOf(client, 'cancelled')).to.have.length(5)
    const stream = client.call('progress', { times: 100, everyMs: 10 }, {}, forever())[Symbol.asyncIterator]()
    expect((await stream.next()).value).to.deep.include({ type: 'progress' })
    await stream.return!()
    expect(await replyOf(client, 'cancelled')).to.have.length(6)
  })

  for (const timeout of [0, -1, Number.NaN])
    it(`takes no time of ${timeout} s`, async () => {
      const error = await client.callTool('echo', {}, { timeout }).catch((item: unknown) => item)
      expect(error).to.deep.include({ code: 'CONFIG_INVALID' })
    })

  it('reports its progress', async () => {
    const all = await steps(client.call('progress', { times: 3 }, {}, forever()))
    expect(all.slice(0, -1)).to.deep.equal([1, 2, 3].map(at => ({ type: 'progress', progress: at, message: `step ${at}` })))
    expect(all.at(-1)).to.deep.include({ type: 'result' })
  })

  it('with arguments that JSON cannot hold fails, and other calls get their questions', async () => {
    await using fresh = hostile()
    const { error } = await fresh.callTool('echo', { text: 1n as unknown as string })
    expect(error).to.deep.include({ class: 'protocol_error' }).and.have.property('message').that.includes('BigInt')
    const [step] = await steps(fresh.call('ask', {}, { dialog: { can: ['elicitation/create'] } }, forever()))
    expect(step).to.include({ type: 'input' })
  })

  it('waits for a place, of its tool and of all', async () => {
    await using narrow = hostile({}, { limits: { calls: 3, callsPerTool: 2 } })
    const leaving = new AbortController()
    const slow = [leaving, new AbortController()].map(({ signal }) => narrow.callTool('sleep', { ms: 10_000 }, { signal }))
    let passed = false
    const third = narrow.callTool('sleep', { ms: 0 }).then(() => (passed = true))
    // another tool has a place left
    expect((await narrow.callTool('echo', { text: 'x' })).error).to.equal(null)
    expect(passed).to.equal(false)
    leaving.abort()
    await third
    await narrow.close()
    expect((await Promise.all(slow)).map(item => item.error?.class)).to.deep.equal(['cancelled', 'connection_refused'])
  })

  it('that has been sent is never sent again', async () => {
    await using dying = hostile({ diesEach: 1 })
    const { error } = await dying.callTool('echo', {})
    expect(error?.class).to.equal('connection_refused')
    await using alive = hostile()
    expect((await alive.callTool('die', {})).error?.class).to.equal('connection_refused')
    expect((await alive.callTool('echo', { text: 'x' })).error).to.equal(null)
  })
})

const CAN = ['elicitation/create'] as const

describe('a question of the server', () => {
  for (const modern of [false, true])
    describe(modern ? 'in the way of 2026' : 'in the way of before 2026', () => {
      let client: McpClient
      before(() => {
        client = hostile({ modern }, { limits: { parkedMs: 200, parked: 2 } })
      })
      after(() => client.close())

      const ask = async (owner = 'anna') => {
        const [step] = await steps(client.call('ask', {}, { owner, dialog: { can: CAN } }, forever()))
        return step as Extract<ToolStep, { type: 'input' }>
      }

      it('is the last word of a call, which goes on with the answer', async () => {
        const { requests, state } = await ask()
        const [[key, request] = ['', undefined]] = Object.entries(requests)
        expect(request).to.deep.include({ method: 'elicitation/create' })
        expect(request?.params).to.deep.include({ message: 'Who are you?' })
        const answers = { [key]: { action: 'accept', content: { name: 'Anna' } } }
        const dialog = { can: CAN, answers, state: state! }
        const [result] = await steps(client.call('ask', {}, { owner: 'anna', dialog }, forever()))
        expect(JSON.stringify(result)).to.include('Anna')
      })

      it('is not asked where the caller cannot answer', async () => {
        const { content, error } = await client.callTool('ask', {})
        if (modern) expect(error).to.deep.include({ class: 'protocol_error' })
        else expect(content).to.deep.equal([{ type: 'text', text: '{"action":"cancel"}' }])
      })
    })

  describe('that is open', () => {
    let client: McpClient
    before(() => {
      client = hostile({}, { limits: { parkedMs: 150, parked: 2 } })
    })
    after(() => client.close())
    const ask = async (owner: string) => {
      const [step] = await steps(client.call('ask', {}, { owner, dialog: { can: CAN } }, forever()))
      return step as Extract<ToolStep, { type: 'input' }>
    }
    const goOn = async (owner: string, tool: string, state: string) => {
      const dialog = { can: CAN, answers: {}, state }
      return steps(client.call(tool, {}, { owner, dialog }, forever())).catch((error: unknown) => error as Error)
    }

    it('cannot be resumed by another caller, or with another tool', async () => {
      const { state } = await ask('anna')
      for (const [owner, tool] of [
        ['bert', 'ask'],
        ['anna', 'echo'],
      ] as const)
        expect(await goOn(owner, tool, state!))
          .to.be.an('error')
          .with.nested.property('details.class', 'cancelled')
      expect(JSON.stringify(await goOn('anna', 'ask', state!))).to.include('cancel')
    })

    it('ends without an answer in time, and notifies the server', async () => {
      const { state } = await ask('anna')
      while ((client.status(), (await replyOf(client, 'cancelled')) as unknown[]).length === 0);
      expect(await goOn('anna', 'ask', state!))
        .to.be.an('error')
        .with.property('message')
        .that.includes('no longer open')
    })

    it('is not passed on while calls of several callers run: it cannot be attributed', async () => {
      const slow = steps(client.call('sleep', { ms: 200 }, { owner: 'bert', dialog: { can: CAN } }, forever()))
      const [step] = await steps(client.call('ask', {}, { owner: 'anna', dialog: { can: CAN } }, forever()))
      expect(JSON.stringify(step)).to.include('{\\"action\\":\\"cancel\\"}')
      await slow
    })

    it('is over with the connection', async () => {
      const { state } = await ask('anna')
      await client.disconnect('for a test')
      expect(await goOn('anna', 'ask', state!))
        .to.be.an('error')
        .with.property('message')
        .that.includes('no longer open')
    })

    it('takes no place of others once its caller has left without reading it', async () => {
      for (let times = 0; times < 3; times++) {
        const leaving = new AbortController()
        const call = client.call('ask', {}, { owner: 'bert', dialog: { can: CAN } }, leaving)[Symbol.asyncIterator]()
        const first = call.next()
        leaving.abort()
        await first.catch(() => {})
        await call.return?.()
      }
      const { state } = await ask('anna')
      expect(JSON.stringify(await goOn('anna', 'ask', state!))).to.include('cancel')
    })

    it('exceeds the limit', async () => {
      const open = [await ask('anna'), await ask('anna')]
      const error = await ask('anna').catch((item: unknown) => item)
      expect(error).to.be.an('error').with.property('message').that.includes('2 calls are already waiting')
      for (const { state } of open) await goOn('anna', 'ask', state!)
    })
  })
})
