import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Backoff, createMcpClient } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { backoffMs, CLOCK as SYSTEM } from '../src/connection/timing.ts'
import { changeOf, CLOCK, hostile, reached } from './support/client.ts'

describe('what an older connection was asked', () => {
  it('has no effect when it is answered on a newer one', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-mcp-'))
    try {
      await using client = hostile({ replays: join(folder, 'ids') })
      for (let life = 0; life < 3; life++) {
        for (const text of ['a', 'b', 'c'])
          expect((await client.callTool('echo', { text })).content, `life ${life}`).to.deep.equal([{ type: 'text', text }])
        const again = changeOf(client, 'connected')
        await client.callTool('die', {})
        await again
      }
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('a program that dies whenever its tools were listed', () => {
  it('is left alone for longer each time, and then for good', async () => {
    const waits: number[] = []
    const after = (ms: number, call: () => void) => {
      if (ms % 500 === 0 && ms < 30_000) waits.push(ms)
      return CLOCK.after(ms < 30_000 ? Math.min(ms, 1) : ms, call)
    }
    const clock = { ...CLOCK, after, random: () => 1 }
    await using client = hostile({ diesAfter: 'tools/list' }, { quarantineAfter: 4, clock })
    // as a client that keeps the tools does
    client.onChange(change => change.type === 'connected' && client.listTools().catch(() => {}))
    const over = reached(client, 'quarantined')
    await client.connect()
    await over
    expect(waits).to.deep.equal([500, 1_000, 2_000])
  })
})

describe('options of a client', () => {
  it('that nothing can be done with are refused in words', async () => {
    const url = 'http://127.0.0.1:1/mcp'
    const policy = (maxAttempts: number, backoff: string) => ({ reconnect: { maxAttempts, backoff: backoff as Backoff } })
    for (const wrong of [
      { timeoutMs: 0 },
      { connectMs: Number.NaN },
      policy(-1, 'linear'),
      policy(0.5, 'linear'),
      policy(1, 'x'),
    ])
      expect(() => createMcpClient({ url, ...wrong }), JSON.stringify(wrong))
        .to.throw()
        .with.property('code', 'CONFIG_INVALID')
    expect(() => createMcpClient({ url: 'nowhere' })).to.throw('url must not be "nowhere"')
    await using client = createMcpClient({ url })
    expect(() => client.setReconnectPolicy(Number.NaN, 'constant')).to.throw('maxAttempts must not be')
    expect(() => client.setReconnectPolicy(1, 'often' as Backoff)).to.throw('backoff must not be "often"')
  })

  it('may wait for longer than a timer of Node can, which would call at once', async () => {
    const first = Promise.withResolvers<string>()
    const stops = [SYSTEM.after(31_536_000_000, () => first.resolve('a year')), SYSTEM.after(20, () => first.resolve('20 ms'))]
    expect(await first.promise).to.equal('20 ms')
    for (const stop of stops) stop()
  })
})

describe('the time before the next attempt', () => {
  it('grows as the policy says, up to 30 seconds', () => {
    const upTo = (backoff: Parameters<typeof backoffMs>[0]) => [0, 1, 2, 10].map(failures => backoffMs(backoff, failures, 1))
    expect(upTo('exponential')).to.deep.equal([500, 1_000, 2_000, 30_000])
    expect(upTo('linear')).to.deep.equal([1_000, 2_000, 3_000, 11_000])
    expect(upTo('constant')).to.deep.equal([1_000, 1_000, 1_000, 1_000])
    expect(backoffMs('exponential', 3, 0.25)).to.equal(1_000)
  })
})
