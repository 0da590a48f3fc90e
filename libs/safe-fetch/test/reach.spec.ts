import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { reachSteps } from '@svc/safe-fetch'
import { expect } from 'chai'

describe('the steps to a server', () => {
  it('say what they found, and which one fails', async () => {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const { signal } = new AbortController()
    try {
      const [resolve, connect, ...none] = reachSteps(new URL(`http://127.0.0.1:${port}/mcp`))
      expect(none).to.deep.equal([])
      expect([await resolve!.run(signal), await connect!.run(signal)]).to.deep.equal(['127.0.0.1', `port ${port}`])
      const secure = reachSteps(new URL(`https://127.0.0.1:${port}/mcp`))
      expect(secure.map(one => one.step)).to.deep.equal(['resolve', 'connect', 'tls'])
      expect(await secure[2]!.run(signal).catch((error: { code?: string }) => error.code)).to.be.a('string')
    } finally {
      server.close()
    }
  })

  it('end when the caller aborts', async () => {
    const [, connect] = reachSteps(new URL('http://127.0.0.1:9/'))
    expect(await connect!.run(AbortSignal.abort(new Error('no'))).catch((error: Error) => error.name)).to.equal('AbortError')
  })
})
