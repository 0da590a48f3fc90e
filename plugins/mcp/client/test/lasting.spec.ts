import { mkdtemp, rm } from 'node:fs/promises'
import { mock } from 'node:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Backoff, createMcpClient } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { BACKOFFS } from '../src/connection/resolved-options.ts'
import { changeOf, hostile, reached } from './support/client.ts'

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
    const backoff = (failures: number) => {
      waits.push(failures)
      return 1
    }
    await using client = hostile({ diesAfter: 'tools/list' }, { quarantineAfter: 4, backoff })
    // as a client that keeps the tools does
    client.onChange(change => change.type === 'connected' && client.listTools().catch(() => {}))
    const over = reached(client, 'quarantined')
    await client.connect()
    await over
    expect(waits).to.deep.equal([0, 1, 2, 3])
  })
})

describe('options of a client', () => {
  it('that nothing can be done with are refused in words', async () => {
    const url = 'http://127.0.0.1:1/mcp'
    const policy = (retryAttempts: number, backoff: string) => ({ retryAttempts, backoff: backoff as Backoff })
    for (const wrong of [{ timeout: 0 }, { connectMs: Number.NaN }, policy(-1, 'linear'), policy(0.5, 'linear'), policy(1, 'x')])
      expect(() => createMcpClient({ url, ...wrong }), JSON.stringify(wrong))
        .to.throw()
        .with.property('code', 'CONFIG_INVALID')
    expect(() => createMcpClient({ url: 'nowhere' })).to.throw('url must not be "nowhere"')
    await using client = createMcpClient({ url })
    expect(() => client.setReconnectPolicy(Number.NaN, 'constant')).to.throw('retryAttempts must not be')
    expect(() => client.setReconnectPolicy(1, 'often' as Backoff)).to.throw('backoff must not be "often"')
  })

  it('can name a time for longer than a timer of Node can wait, which would call at once', async () => {
    await using client = hostile({}, { timeout: 31_536_000, connectMs: 31_536_000_000 })
    expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
  })

  it('are refused if they do not exist, and the hint names the right one', () => {
    for (const [wrong, right] of [
      ['retry_attempts', 'retryAttempts'],
      ['api_key', 'apiKey'],
      ['timeoutMs', 'timeout'],
    ] as const)
      expect(() => createMcpClient({ url: 'http://127.0.0.1:1/mcp', [wrong]: 1 }))
        .to.throw(`there is no option "${wrong}"`)
        .with.property('hint', `Use ${right}`)
  })
})

describe('the time before the next attempt', () => {
  it('grows as the policy says, up to 30 seconds', () => {
    const upTo = (wait: (failures: number) => number) => [0, 1, 2, 10, 99].map(wait)
    const random = mock.method(Math, 'random', () => 1)
    expect(upTo(BACKOFFS.exponential)).to.deep.equal([500, 1_000, 2_000, 30_000, 30_000])
    random.mock.mockImplementation(() => 0.25)
    expect(BACKOFFS.exponential(3)).to.equal(1_000)
    random.mock.restore()
    expect(upTo(BACKOFFS.linear)).to.deep.equal([1_000, 2_000, 3_000, 11_000, 30_000])
    expect(upTo(BACKOFFS.constant)).to.deep.equal([1_000, 1_000, 1_000, 1_000, 1_000])
  })
})
