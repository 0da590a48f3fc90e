import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { serverUnreachable } from '../src/errors.ts'

describe('SERVER_UNREACHABLE', () => {
  const silent = createServer(() => {})
  let url: string
  before(async () => {
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  })
  after(() => silent.close().closeAllConnections())

  const late = () => ({ signal: AbortSignal.timeout(20) })
  const failure = (work: Promise<unknown>, at = url) =>
    work.then(
      () => expect.fail('it has answered'),
      (error: unknown) => serverUnreachable(at, error)
    )

  it('tells a server that does not answer in time from one that is not there', async () => {
    const byFetch = await failure(fetch(url, late()))
    const byRequest = await failure(once(request(url, late()).end(), 'response'))
    for (const { message, hint } of [byFetch, byRequest]) {
      expect(message).to.equal(`the server at ${url} has not answered in time`)
      expect(hint).to.match(/log of the server/)
    }
    const absent = await failure(fetch('http://127.0.0.1:1'), 'http://127.0.0.1:1')
    expect(absent.message).to.equal('no server answers at http://127.0.0.1:1')
  })
})
