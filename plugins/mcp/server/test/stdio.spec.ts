import { once } from 'node:events'
import { Tools } from '@svc/core/contracts'
import { expect } from 'chai'
import { echo, startMcpHost, toolOf } from './support/host.ts'
import { later } from './support/later.ts'
import { line } from './support/line.ts'
import { envelope, LEGACY } from './support/wire.ts'

const initialize = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } }
const CALL = { name: 'echo', arguments: { text: 'x' } }
const answered = { content: [{ type: 'text', text: 'x' }] }

describe('a client on a line of its own', () => {
  it('is served as the era of sessions wants it', async () => {
    await using mcpHost = await startMcpHost()
    const client = line(mcpHost)
    expect((await client.ask('initialize', initialize)).result).to.deep.include({ protocolVersion: LEGACY })
    client.say({ method: 'notifications/initialized' })
    expect((await client.ask('tools/call', CALL, 2)).result).to.deep.include(answered)
    expect((await client.ask('tools/call', { name: 'none' }, 3)).error).to.include({ code: -32602 })
    client.input.end()
    await client.served
  })

  it('is served as the stateless era wants it', async () => {
    await using mcpHost = await startMcpHost()
    const client = line(mcpHost)
    const _meta = envelope()
    expect((await client.ask('server/discover', { _meta })).result?.supportedVersions).to.deep.equal(['2026-07-28'])
    expect((await client.ask('tools/call', { ...CALL, _meta }, 2)).result).to.deep.include({
      ...answered,
      resultType: 'complete',
    })
    client.input.end()
    await client.served
  })

  it('cancels what it no longer wants', async () => {
    const begun = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const endless = toolOf(async (_args, { signal }) => {
      begun.resolve()
      await once(signal, 'abort')
      ended.resolve()
      throw signal.reason
    })
    await using mcpHost = await startMcpHost({ tools: { endless } })
    const client = line(mcpHost)
    await client.ask('initialize', initialize)
    client.say({ id: 2, method: 'tools/call', params: { name: 'endless', arguments: {} } })
    await begun.promise
    client.say({ method: 'notifications/cancelled', params: { requestId: 2 } })
    await ended.promise
    client.input.end()
    await client.served
  })

  it('hears of changes, in its era: all of them, or those that it subscribed to', async () => {
    const { gift, add } = later()
    await using mcpHost = await startMcpHost({ give: [gift] })
    const [old, client] = [line(mcpHost), line(mcpHost)]
    await old.ask('initialize', initialize)
    const listening = { notifications: { toolsListChanged: true }, _meta: envelope() }
    expect(await client.ask('subscriptions/listen', listening)).to.include({ method: 'notifications/subscriptions/acknowledged' })
    add(Tools, 'more', echo)
    for (const item of [old, client]) {
      expect(await item.hear()).to.include({ method: 'notifications/tools/list_changed' })
      item.input.end()
      await item.served
    }
  })

  it('hears of each bad line what is wrong with it, and is served on', async () => {
    await using mcpHost = await startMcpHost()
    const client = line(mcpHost)
    await client.ask('initialize', initialize)
    const deep = `{"jsonrpc":"2.0","id":8,"method":"ping","params":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`
    for (const [bad, code, id] of [
      ['{"no json', -32_700, null],
      ['\u0000', -32_700, null],
      ['{}', -32_600, null],
      ['[]', -32_600, null],
      ['7', -32_600, null],
      ['{"jsonrpc":"2.0","id":5,"method":5}', -32_600, 5],
      ['{"jsonrpc":"2.0","id":{},"method":"ping"}', -32_600, null],
      ['{"jsonrpc":"2.0","id":"six","method":"ping","params":[]}', -32_600, 'six'],
      [deep, -32_600, 8],
    ] as const) {
      client.input.write(`${bad}\n`)
      const reported = await client.hear()
      expect([reported.error?.code, reported.id], bad.slice(0, 60)).to.deep.equal([code, id])
    }
    client.input.write('\n\r\n')
    expect((await client.ask('ping', {}, 7)).result).to.deep.equal({})
    client.input.end()
    await client.served
  })

  it('hears that a line was too long, and is served on', async () => {
    await using mcpHost = await startMcpHost()
    const client = line(mcpHost)
    await client.ask('initialize', initialize)
    client.input.write(`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"text":"${'x'.repeat(11 * 1_048_576)}"}}\n`)
    expect((await client.hear()).error)
      .to.include({ code: -32_000 })
      .and.have.property('message')
      .that.includes('10485760 bytes')
    expect((await client.ask('ping', {}, 7)).result).to.deep.equal({})
    client.input.end()
    await client.served
  })

  it('is left where its line does not end, and where it hears nothing any more', async () => {
    await using mcpHost = await startMcpHost()
    const endless = line(mcpHost)
    await endless.ask('initialize', initialize)
    const part = Buffer.alloc(1_048_576, 'x')
    const left = endless.served.then(() => 'left')
    for (let count = 0; count < 200; count++)
      if (!endless.input.write(part)) await Promise.race([once(endless.input, 'drain'), left])
    expect(await left).to.equal('left')
    const deaf = line(mcpHost)
    await deaf.ask('initialize', initialize)
    deaf.output.destroy(new Error('nobody reads'))
    await deaf.served
  })

  it('ends when the server stops', async () => {
    await using mcpHost = await startMcpHost()
    const ending = new AbortController()
    const client = line(mcpHost, ending)
    await client.ask('initialize', initialize)
    ending.abort()
    await client.served
  })
})
