import type { Tool } from '@svc/core/contracts'
import { expect } from 'chai'
import { startMcpHost, toolOf } from './support/host.ts'
import { back, begin, type Json } from './support/wire.ts'

/** Tools that run until they are let go; `running` is how many do. */
function holding() {
  const free = Promise.withResolvers<void>()
  const watch = { running: 0, most: 0, ended: 0 }
  const reached = new Map<number, () => void>()
  const call: Tool['call'] = async () => {
    watch.most = Math.max(watch.most, ++watch.running)
    reached.get(watch.running)?.()
    await free.promise
    watch.running--
    watch.ended++
    return { content: [] }
  }
  return {
    watch,
    tool: toolOf(call),
    free: () => free.resolve(),
    /** Settled when so many run. */
    until: (count: number) => new Promise<void>(resolve => void reached.set(count, resolve)),
  }
}

const call = (name: string, id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: {} } })

describe('calls at once', () => {
  it('of one tool are 8, others wait for their turn and get it', async () => {
    const { tool, watch, free, until } = holding()
    await using mcpHost = await startMcpHost({ tools: { held: tool } })
    const session = await begin(mcpHost.url)
    const full = until(8)
    const batch = Array.from({ length: 20 }, (_, id) => call('held', id + 1))
    const answer = await fetch(`${mcpHost.url}/mcp`, { method: 'POST', headers: session.headers, body: JSON.stringify(batch) })
    await full
    await session.request('ping', {}, 99)
    expect(watch.running).to.equal(8)
    free()
    const { events } = await back(answer)
    expect(events).to.have.length(20)
    expect(JSON.stringify(events)).to.not.contain('isError')
    expect(watch).to.deep.equal({ running: 0, most: 8, ended: 20 })
  })

  it('of all tools are 64, and those beyond what may wait are refused in words', async () => {
    const { tool, watch, free, until } = holding()
    const names = Array.from({ length: 10 }, (_, at) => `held_${at}`)
    await using mcpHost = await startMcpHost({ tools: Object.fromEntries(names.map(name => [name, tool])) })
    const session = await begin(mcpHost.url)
    const full = until(64)
    const batches = Array.from({ length: 12 }, (_, at) =>
      Array.from({ length: 100 }, (_none, id) => call(names[id % 10]!, at * 100 + id + 1))
    )
    const answers = batches.map(batch =>
      fetch(`${mcpHost.url}/mcp`, { method: 'POST', headers: session.headers, body: JSON.stringify(batch) })
    )
    await full
    const open = await Promise.all(answers)
    await session.request('ping', {}, 0)
    free()
    const reported = (await Promise.all(open.map(back))).flatMap(({ events }) => events)
    const refused = reported.filter(event => JSON.stringify(event.result).includes('are already waiting'))
    expect(reported).to.have.length(1_200)
    expect(refused).to.have.length(1_200 - 64 - 1_024)
    expect(refused.every(event => (event.result as Json).isError === true)).to.equal(true)
    expect(watch).to.deep.equal({ running: 0, most: 64, ended: 64 + 1_024 })
  })
})
