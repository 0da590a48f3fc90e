import { mock } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { type Misbehavior, type HostileServer, openHostile } from '../../../../test/support/hostile.ts'
import { changeOf, hostile, remote } from './support/client.ts'

const MIB = 1_048_576
/** A message of 50 MB that is held, decoded and parsed costs more than 200. */
const MOST_GROWN = 120 * MIB
/** Bytes that this process holds more after some work. */
async function grown(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage().rss
  await work()
  return process.memoryUsage().rss - before
}

describe('a list of tools', () => {
  for (const [what, problems, count, fault] of [
    ['with 100,000 tools is cut', { tools: 100_000 }, 1_000, 'it has more than 1000 tools: the rest is left out'],
    ['without end is cut', { cursors: 'endless' }, 100, 'its list has more than 100 pages: the rest is left out'],
    ['that leads back to itself is cut', { cursors: 'same' }, 1, 'its list leads back to an earlier page'],
    [
      'with a schema that is too deep is left without it',
      { schema: 'deep' },
      14,
      'tool "schema": its schemas are deeper than 64 levels',
    ],
    ['whose pattern would take for ever is only passed on', { schema: 'pattern' }, 15, undefined],
  ] as const)
    it(what, async () => {
      await using client = hostile(problems)
      const { tools, problems: reported } = await client.listTools()
      expect(tools.length).to.equal(count)
      expect(reported).to.include.members(fault === undefined ? [] : [fault])
      expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
    })

  it('of 50 MB fails, and little is kept of it', async () => {
    await using server = await openHostile({ schema: 'large' })
    await using client = remote(server.url)
    await client.connect()
    let error: unknown
    const bytes = await grown(async () => {
      error = await client.listTools().catch((item: unknown) => item)
    })
    expect(error).to.be.an('error').with.property('message').that.includes('more than 10485760 bytes')
    expect(bytes).to.be.below(MOST_GROWN)
    expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
  })

  it('without hidden characters, which are reported', async () => {
    await using client = hostile({ hidden: true })
    const { tools } = await client.listTools()
    expect(tools.find(tool => tool.name === 'echo')).to.deep.include({
      description: 'Does echo.',
      stripped: ['description U+200B × 1, U+202E × 1, U+E0041 × 1, U+E0042 × 1'],
    })
  })

  it('that changes with each call is reported at most once a second', async () => {
    await using client = hostile({ fickle: true })
    let reports = 0
    client.onChange(change => change.type === 'tools' && reports++)
    await client.connect()
    const begun = performance.now()
    for (let calls = 0; calls < 50; calls++) await client.callTool('echo', { text: 'x' })
    expect(reports).to.be.within(1, 2 + (performance.now() - begun) / 1_000)
    await pause(1_100)
    expect(reports).to.be.at.least(2)
  })

  it('that changes is reported', async () => {
    await using client = hostile({ fickle: true })
    const [first] = (await client.listTools()).tools
    const changed = changeOf(client, 'tools')
    await client.callTool('echo', { text: 'x' })
    await changed
    expect((await client.listTools()).tools[0]?.hash).to.not.equal(first?.hash)
  })
})

describe('an answer', () => {
  const brief = { timeout: 0.3 }
  for (const [what, wrong, kind] of [
    ['that is no JSON is waited for no longer than the call may take', 'text', 'timeout'],
    ['of another protocol too', 'envelope', 'timeout'],
    ['without a request too', 'id', 'timeout'],
  ] as const)
    it(what, async () => {
      await using client = hostile({ malformed: { 'tools/call': wrong } })
      await client.connect()
      expect((await client.callTool('echo', { text: 'x' }, brief)).error?.class).to.equal(kind)
      expect(client.status().state).to.equal('connected')
    })

  it('that comes twice counts once', async () => {
    await using client = hostile({ malformed: { 'tools/call': 'twice' } })
    for (const text of ['a', 'b', 'c'])
      expect((await client.callTool('echo', { text })).content).to.deep.equal([{ type: 'text', text }])
  })

  it('that is no result, or deeper than can be written again, is an error of the protocol', async () => {
    await using client = hostile()
    for (const tool of ['lie', 'deep']) expect((await client.callTool(tool, {})).error?.class).to.equal('protocol_error')
    expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
  })
})

for (const where of ['stdio', 'http'])
  describe(`an answer of 50 MB over ${where}`, () => {
    it('fails its call, costs little memory, and no other call', async () => {
      await using server = where === 'stdio' ? undefined : await openHostile()
      await using client = server === undefined ? hostile() : remote(server.url)
      const other = client.callTool('sleep', { ms: 500 }, { timeout: 20 })
      let error: unknown
      const bytes = await grown(async () => {
        error = (await client.callTool('big', { bytes: 50_000_000 }, { timeout: 20 })).error
      })
      expect(error).to.deep.equal({ class: 'protocol_error', message: 'it answers with more than 10485760 bytes' })
      expect(bytes).to.be.below(MOST_GROWN)
      expect((await other).error).to.equal(null)
      expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
    })
  })

describe('a flood', () => {
  for (const flood of ['notices', 'answers', 'line'] as const)
    it(`of ${flood} ends the connection, and no other server waits for it`, async () => {
      await using bad = hostile({ flood }, { retryAttempts: 0, quarantineAfter: 1, limits: { resultBytes: MIB } })
      await using good = hostile()
      const cut = changeOf(bad, 'disconnected')
      const failed = bad.connect().catch((error: unknown) => error)
      for (let calls = 0; calls < 10; calls++) expect((await good.callTool('echo', { text: 'x' })).error).to.equal(null)
      // it may be over before the handshake is
      await Promise.race([cut, failed.then(item => (item instanceof Error ? undefined : cut))])
      expect((await bad.callTool('echo', {})).error?.message).to.include('quarantine')
    })

  it('of standard error is read, and its end kept', async () => {
    await using client = hostile({ flood: 'stderr' })
    expect((await client.callTool('progress', { times: 5, everyMs: 20 })).error).to.equal(null)
    expect(client.status().stderr).to.match(/^y+$/)
    expect(client.status().stderr?.length).to.be.at.most(8_192)
  })
})

describe('a server over HTTP that', () => {
  async function withServer(problems: Misbehavior, work: (server: HostileServer) => Promise<void>) {
    await using server = await openHostile(problems)
    await work(server)
  }

  it('never stops sending unrequested messages is disconnected', () =>
    withServer({ stream: 'endless' }, async ({ url }) => {
      await using client = remote(url, { quarantineAfter: 1, limits: { noticesPerSecond: 100 } })
      const cut = changeOf(client, 'disconnected')
      await client.connect()
      expect((await cut).reason).to.equal('it sent too many messages without a request')
    }))

  it('ends its stream and wants it asked for again at once is asked four times a second at most', () =>
    withServer({ stream: 'again' }, async ({ url }) => {
      await using client = remote(url)
      const timers = mock.method(globalThis, 'setTimeout')
      await client.connect()
      await pause(600)
      timers.mock.restore()
      const waits = timers.mock.calls.map(call => call.arguments[1])
      expect(waits.filter(ms => ms === 250).length).to.be.within(1, 3)
      expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
    }))

  it('keeps the stream of an answer open delays no other call', () =>
    withServer({ stream: 'open' }, async ({ url }) => {
      await using client = remote(url)
      expect((await client.callTool('echo', { text: 'x' })).content).to.deep.equal([{ type: 'text', text: 'x' }])
    }))

  it('forgets its sessions gets a new one, and the call that it did not carry out', () =>
    withServer({ forgetsAfter: 4 }, async ({ url }) => {
      await using client = remote(url)
      for (let calls = 0; calls < 12; calls++) expect((await client.callTool('echo', { text: 'x' })).error).to.equal(null)
    }))

  it('sends us somewhere else is not followed', async () => {
    await using aim = await openHostile()
    await withServer({ status: 307, location: aim.url }, async ({ url }) => {
      await using client = remote(url, { retryAttempts: 0 })
      const error = await client.connect().catch((item: unknown) => item)
      expect(error).to.deep.include({ code: 'MCP_CALL_FAILED' })
    })
  })

  for (const [status, kind] of [
    [401, 'authentication_failed'],
    [403, 'authentication_failed'],
    [500, 'connection_refused'],
    [418, 'protocol_error'],
  ] as const)
    it(`answers ${status} is ${kind}`, () =>
      withServer({ status }, async ({ url }) => {
        await using client = remote(url, { retryAttempts: 0 })
        expect((await client.callTool('echo', {})).error?.class).to.equal(kind)
      }))

  it('is gone is connection_refused', async () => {
    const { url } = await openHostile().then(async server => {
      await server[Symbol.asyncDispose]()
      return server
    })
    await using client = remote(url, { retryAttempts: 1 })
    const { error } = await client.callTool('echo', {})
    expect(error?.class).to.equal('connection_refused')
    expect(client.status()).to.deep.include({ state: 'failed', attempts: 2 })
  })
})
