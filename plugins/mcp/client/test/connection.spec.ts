import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { McpClient } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { processesWith } from '../../../../test/support/mcp-crashes.ts'
import { changeOf, hostile, isAlive, reached, replyOf } from './support/client.ts'

const MISSING = { command: '/there/is/no/such/program', args: [] }
interface Pids {
  readonly pid: number
  readonly grandchild?: number
}

describe('a connection to a program', () => {
  it('is made once, however many ask for it at the same time', async () => {
    await using client = hostile()
    const pids = await Promise.all([
      replyOf(client, 'pid'),
      replyOf(client, 'pid'),
      client.connect().then(() => replyOf(client, 'pid')),
    ])
    expect(new Set((pids as Pids[]).map(pid => pid.pid)).size).to.equal(1)
    expect(client.status()).to.deep.include({ state: 'connected', attempts: 0, protocolVersion: '2025-11-25' })
    expect(client.status().server).to.deep.equal({ name: 'hostile', version: '1.0.0' })
    expect(client.status().stderr).to.equal('hostile: ready')
  })

  it('is not needed before somebody asks for it', async () => {
    await using client = hostile()
    expect(client.status()).to.deep.include({ state: 'disconnected', attempts: 0 })
  })

  it('speaks the newer protocol where the program does, and remembers what it speaks', async () => {
    await using client = hostile({ modern: true })
    await client.connect()
    expect(client.status()).to.deep.include({ protocolVersion: '2026-07-28' })
    expect(client.status().known?.era).to.equal('modern')
  })

  it('is made with programs that end when they are asked what they do not know', async () => {
    await using client = hostile({ diesOnUnknown: true })
    await client.connect()
    const { known } = client.status()
    expect(known?.era).to.equal('legacy')
    // what is known spares the next one the question
    await using next = hostile({ diesOnUnknown: true }, { known: known! })
    const states: string[] = []
    next.onChange(change => change.type === 'state' && states.push(change.status.state))
    await next.connect()
    expect(states).to.deep.equal(['connecting', 'connected'])
  })

  it('reconnects after the program has died, and reports both', async () => {
    await using client = hostile()
    const reasons: string[] = []
    client.onDisconnect(reason => reasons.push(reason))
    const first = (await replyOf(client, 'pid')) as Pids
    const again = changeOf(client, 'connected')
    const { error } = await client.callTool('die', {})
    expect(error).to.deep.include({ class: 'connection_refused' })
    await again
    const second = (await replyOf(client, 'pid')) as Pids
    expect(second.pid).to.not.equal(first.pid)
    expect(reasons).to.deep.equal(['its process ended with code 3'])
  })

  it('reports how long each attempt took and each connection lasted', async () => {
    await using client = hostile()
    const times: number[] = []
    client.onChange(change => 'durationMs' in change && times.push(change.durationMs))
    const begun = performance.now()
    await client.connect()
    const connected = performance.now() - begun
    await pause(1_500)
    const again = changeOf(client, 'connected')
    await client.callTool('die', {})
    await again
    const [first, lasted, second] = times as [number, number, number]
    expect(first).to.be.within(1, connected + 1)
    expect(lasted).to.be.within(1_490, 10_000)
    // the time of the attempt alone, not the age of the connection before
    expect(second).to.be.within(1, 1_400)
  })

  it('is given up after so many attempts, then fails at once until somebody asks by hand', async () => {
    await using client = hostile({}, MISSING)
    client.setReconnectPolicy(2, 'exponential')
    const attempts: number[] = []
    client.onChange(
      change => change.type === 'state' && change.status.state.endsWith('ing') && attempts.push(change.status.attempts)
    )
    const failed = reached(client, 'failed')
    const { error } = await client.callTool('echo', {})
    expect(error).to.deep.include({ class: 'connection_refused' })
    await failed
    expect(error?.message).to.include('no such program').and.not.include('/there')
    expect(client.status()).to.deep.include({ state: 'failed', attempts: 3 })
    expect((await client.callTool('echo', {})).error).to.deep.equal(error)
    expect(Math.max(...attempts)).to.equal(3)
    await client.connect().catch(() => {})
    expect(Math.max(...attempts)).to.equal(6)
  })

  it('lets a call wait for a second attempt, not for all there will be', async () => {
    await using client = hostile({}, { ...MISSING, quarantineAfter: 1_000, retryAttempts: 900 })
    const trying = reached(client, 'reconnecting')
    const { error } = await client.callTool('echo', {})
    expect(error).to.deep.include({ class: 'connection_refused' })
    await trying
    expect(client.status().state).to.equal('reconnecting')
    expect((await client.callTool('echo', {})).error).to.deep.equal(error)
  })

  it('is in quarantine after so many failures in a row, until it is switched on again', async () => {
    await using client = hostile({}, { ...MISSING, quarantineAfter: 2, retryAttempts: 9 })
    await client.connect().catch(() => {})
    expect(client.status().state).to.equal('quarantined')
    expect((await client.callTool('echo', {})).error?.message).to.include('quarantine')
    await client.setEnabled(true)
    expect(client.status().state).to.equal('disconnected')
  })

  it('is in quarantine when the program dies at each call, and not where it answers in between', async () => {
    await using client = hostile({ diesEach: 2 }, { quarantineAfter: 2 })
    for (let round = 0; round < 3; round++) {
      expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
      expect((await client.callTool('echo', { text: 'x' })).error?.class).to.equal('connection_refused')
    }
    await using bad = hostile({ diesEach: 1 }, { quarantineAfter: 2 })
    for (let round = 0; round < 2; round++) await bad.callTool('echo', {})
    expect(bad.status().state).to.equal('quarantined')
  })

  it('does not come again by itself after somebody has given it up', async () => {
    await using client = hostile()
    const first = (await replyOf(client, 'pid')) as Pids
    const states: string[] = []
    client.onChange(change => change.type === 'state' && states.push(change.status.state))
    await client.disconnect('for a test')
    // what the old process still does has no effect
    expect(isAlive(first.pid)).to.equal(false)
    expect(states).to.deep.equal(['disconnected'])
    await client.connect()
    expect(states).to.deep.equal(['disconnected', 'connecting', 'connected'])
  })

  it('stays connected when a listener throws', async () => {
    await using client = hostile()
    const warned = once(process, 'warning')
    client.onDisconnect(() => {
      throw new Error('a listener of a test')
    })
    await client.callTool('die', {})
    expect((await warned)[0]).to.have.property('message', 'a listener of a test')
    expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
  })

  for (const [how, stop, last] of [
    ['closes', (client: McpClient) => client.close(), 'disconnected'],
    ['disables', (client: McpClient) => client.setEnabled(false), 'disabled'],
  ] as const)
    it(`stays away when a listener ${how} it as it is lost`, async () => {
      await using client = hostile()
      await client.connect()
      const states: string[] = []
      client.onChange(change => change.type === 'state' && states.push(change.status.state))
      const [stopped, problems] = [Promise.withResolvers<void>(), [] as unknown[]]
      const note = (error: unknown) => void problems.push(error)
      process.on('unhandledRejection', note)
      client.onDisconnect(() => stopped.resolve(stop(client)))
      await client.callTool('die', {})
      await stopped.promise
      await pause(50)
      process.off('unhandledRejection', note)
      expect(problems, 'would end a process').to.deep.equal([])
      expect(states).to.deep.equal([last])
    })

  it('is not made when a listener disconnects it at the first attempt', async () => {
    await using client = hostile()
    const states: string[] = []
    client.onChange(change => {
      if (change.type !== 'state') return
      states.push(change.status.state)
      if (change.status.state === 'connecting') void client.disconnect('a listener did not want it')
    })
    const error = await client.connect().catch((item: unknown) => item)
    expect(error).to.be.an('error').with.property('message').that.includes('a listener did not want it')
    expect(states).to.deep.equal(['connecting', 'disconnected'])
    expect(client.status().stderr).to.equal(undefined)
  })

  it('is not made while it is switched off', async () => {
    await using client = hostile()
    const { pid } = (await replyOf(client, 'pid')) as Pids
    await client.setEnabled(false)
    expect(isAlive(pid)).to.equal(false)
    expect(client.status().state).to.equal('disabled')
    expect((await client.callTool('echo', {})).error?.message).to.include('it is disabled')
    await client.setEnabled(true)
    expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
  })

  it('is degraded where somebody says so, and usable', async () => {
    await using client = hostile()
    await client.connect()
    client.setDegraded({ class: 'protocol_error', message: 'a tool has changed' })
    expect(client.status()).to.deep.include({
      state: 'degraded',
      lastError: { class: 'protocol_error', message: 'a tool has changed' },
    })
    expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
    client.setDegraded(undefined)
    expect(client.status().state).to.equal('connected')
  })

  it('is closed when it is idle, and opened by the next call', async () => {
    await using client = hostile({}, { idleMs: 5 })
    const idle = changeOf(client, 'disconnected')
    const { pid } = (await replyOf(client, 'pid')) as Pids
    await idle
    expect((await replyOf(client, 'pid')) as Pids).to.not.deep.include({ pid })
  })

  it('ends a program that ignores it, with all that it has started', async () => {
    const ended = (['group', 'session'] as const).map(async grandchild => {
      await using client = hostile({ ignoresTerm: true, grandchild })
      return (await replyOf(client, 'pid')) as Pids
    })
    for (const { pid, grandchild } of await Promise.all(ended))
      expect([isAlive(pid), isAlive(grandchild!)]).to.deep.equal([false, false])
  })

  it('hands the program no variable but those it needs and was given', async () => {
    process.env['SVC_TEST_SECRET'] = 'canary'
    await using client = hostile({}, { env: { GIVEN: 'yes' } })
    const env = (await replyOf(client, 'env')) as Record<string, string>
    delete process.env['SVC_TEST_SECRET']
    expect(env).to.include({ GIVEN: 'yes', PATH: process.env['PATH'] }).and.not.have.property('SVC_TEST_SECRET')
  })

  it('is started as somebody says, and what that made is released when it has ended', async () => {
    const events: string[] = []
    const client = hostile(
      {},
      {
        wrap: async launch => ({
          ...launch,
          env: { ...launch.env, WRAPPED: '1' },
          release: async () => {
            events.push('released')
            return 'the sandbox ended it'
          },
        }),
      }
    )
    expect(await replyOf(client, 'env')).to.include({ WRAPPED: '1' })
    expect((await client.callTool('die', {})).error?.message).to.equal('the connection was lost: the sandbox ended it')
    await client.close()
    expect(events[0]).to.equal('released')
  })

  it('goes on when what started its program cannot be released', async () => {
    const release = () => Promise.reject(new Error('the sandbox is gone'))
    await using client = hostile({}, { wrap: async launch => ({ ...launch, release }) })
    await client.connect()
    const again = changeOf(client, 'connected')
    expect((await client.callTool('die', {})).error?.class).to.equal('connection_refused')
    await again
    expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
  })

  it('fails its calls when it is closed, and makes no other', async () => {
    const client = hostile()
    await client.connect()
    const call = client.callTool('never', {})
    await client.close()
    expect((await call).error?.class).to.equal('connection_refused')
    expect((await client.callTool('echo', {})).error?.message).to.include('closed')
  })

  it('ends its attempts when it is closed', async () => {
    const client = hostile({}, { ...MISSING, retryAttempts: 9 })
    const waiting = reached(client, 'reconnecting')
    const connecting = client.connect().catch((error: unknown) => error)
    await waiting
    await client.close()
    expect(await connecting).to.deep.include({ code: 'MCP_CALL_FAILED' })
  })

  for (const [what, problems, connectMs, words] of [
    ['does not answer', { silent: ['server/discover', 'initialize'] }, 300, /0.3 s/],
    ['claims an unknown version', { version: '1999-01-01' }, 10_000, /not supported/],
    ['answers the handshake with nonsense', { malformed: { initialize: 'id' } }, 300, /0.3 s/],
  ] as const)
    it(`fails where the program ${what}`, async () => {
      const mark = `SVC_TEST=${randomUUID()}`
      const env = { SVC_TEST: mark.slice('SVC_TEST='.length) }
      await using client = hostile(problems, { connectMs, retryAttempts: 0, env })
      const error = await client.connect().catch((item: unknown) => item)
      expect(error).to.be.an('error').with.property('code', 'MCP_CALL_FAILED')
      expect((error as Error).message).to.match(words)
      await client.close()
      expect(processesWith(mark)).to.equal(0)
    })
})
