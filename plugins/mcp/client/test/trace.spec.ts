import type { McpClient } from '@svc/plugin-mcp-client/client'
import { expect } from 'chai'
import { openHostile } from '../../../../test/support/hostile.ts'
import { forever, hostile, remote, steps } from './support/client.ts'

describe('the trace of a call', () => {
  const TRACE = { trace: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', traceState: 'a=1' }
  const WORDS = { traceparent: TRACE.trace, tracestate: 'a=1' }
  const readOf = async (mcpClient: McpClient, tool: string, traced: object): Promise<unknown> => {
    const [step] = await steps(mcpClient.call(tool, {}, {}, { ...forever(), ...traced }))
    const part = step?.type === 'result' ? step.result.content[0] : undefined
    return JSON.parse(part?.type === 'text' ? part.text : 'null')
  }
  const metaOf = async (mcpClient: McpClient, traced: object) =>
    ((await readOf(mcpClient, 'pid', traced)) as { meta: object }).meta

  it('is sent to the server in the message, where it is valid', async () => {
    await using client = hostile()
    expect(await metaOf(client, TRACE)).to.deep.include(WORDS)
    expect(await metaOf(client, { trace: TRACE.trace })).to.have.all.keys('traceparent', 'progressToken')
    for (const none of [{}, { traceState: 'a=1' }, { trace: 'a\r\nb: c', traceState: 'a=1' }])
      expect(await metaOf(client, none)).to.have.all.keys('progressToken')
    expect(await metaOf(client, { trace: TRACE.trace, traceState: 'a\r\nb: c' })).to.have.all.keys('traceparent', 'progressToken')
  })

  for (const modern of [false, true])
    it(`is sent over HTTP in headers as well, and not with the next call, to a server ${modern ? 'without' : 'with'} sessions`, async () => {
      await using server = await openHostile({ http: true, modern })
      await using found = remote(server.url)
      expect(await readOf(found, 'pid', TRACE))
        .to.have.property('meta')
        .that.includes(WORDS)
      expect(await readOf(found, 'headers', TRACE)).to.include(WORDS)
      expect(await readOf(found, 'headers', {})).to.not.have.any.keys(WORDS)
    })
})
