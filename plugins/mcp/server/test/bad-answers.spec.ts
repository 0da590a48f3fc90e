import { expect } from 'chai'
import { echo, startMcpHost, toolOf } from './support/host.ts'
import { ask, asked, back, begin } from './support/wire.ts'

describe('a bad answer of a tool over /mcp', () => {
  it('of 50 MB is left out, and says so; the next call is fine', async () => {
    const huge = toolOf(async ({ size }) => ({ content: [{ type: 'text', text: 'x'.repeat(size as number) }] }))
    await using mcpHost = await startMcpHost({ tools: { huge, echo } })
    const session = await begin(mcpHost.url)
    const call = (size: number) => ({ name: 'huge', arguments: { size } })
    for (const { body, text } of [
      await asked(mcpHost.url, 'tools/call', call(50_000_000)),
      await asked(mcpHost.url, 'tools/call', call(11_000_000), { meta: { progressToken: 1 } }),
      await session.request('tools/call', call(11_000_000)),
    ]) {
      expect(text.length).to.be.below(2_000)
      expect(body.result).to.include({ isError: true })
      expect(JSON.stringify(body.result?.content)).to.contain('larger than 10485760 bytes')
    }
    expect((await asked(mcpHost.url, 'tools/call', { name: 'echo', arguments: { text: 'x' } })).status).to.equal(200)
  })

  it('that names no content, or is nothing at all, is an error in our words', async () => {
    const tools = Object.fromEntries(
      [undefined, null, 7, {}, { content: 'text' }, { content: [{ text: 'x' }] }].map((answer, at) => [
        `bad_${at}`,
        toolOf(async () => answer as never),
      ])
    )
    await using mcpHost = await startMcpHost({ tools })
    for (const name of Object.keys(tools)) {
      const { body } = await asked(mcpHost.url, 'tools/call', { name, arguments: {} })
      expect(body.result, name).to.include({ isError: true })
      expect(JSON.stringify(body.result?.content)).to.match(/did not return|without a result/)
    }
  })

  it('reveals neither stack nor path if it fails', async () => {
    const secret = '/srv/somebody/key.pem'
    const reads = toolOf(async () => {
      throw Object.assign(new Error(`ENOENT: no such file or directory, open '${secret}'`), {
        code: 'ENOENT',
        syscall: 'open',
        path: secret,
      })
    })
    const wraps = toolOf(async () => {
      const cause = new Error('inner')
      throw new Error(`outer failed\n    at run (${secret}:1:1)`, { cause })
    })
    await using mcpHost = await startMcpHost({ tools: { reads, wraps } })
    for (const [name, words] of [
      ['reads', 'ENOENT: no such file or directory'],
      ['wraps', 'outer failed'],
    ] as const) {
      const { body } = await asked(mcpHost.url, 'tools/call', { name, arguments: {} })
      expect(body.result).to.deep.include({ isError: true, content: [{ type: 'text', text: words }] })
    }
  })

  it('that takes too long ends at its limit and does not block other calls', async () => {
    const slow = toolOf(({ hang }) => (hang === true ? new Promise(() => {}) : Promise.resolve({ content: [] })), {
      timeoutMs: 50,
    })
    await using mcpHost = await startMcpHost({ tools: { slow } })
    const call = (hang: boolean, id: number) => ask(mcpHost.url, 'tools/call', { name: 'slow', arguments: { hang } }, { id })
    for (const answer of Array.from({ length: 20 }, (_, id) => call(true, id))) {
      const { body } = await back(await answer)
      expect(JSON.stringify(body.result?.content)).to.contain('did not finish within 0.05 s')
    }
    expect((await back(await call(false, 1))).body.result).to.deep.include({ content: [] })
  })
})
