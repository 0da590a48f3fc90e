import { request } from 'node:http'
import { Limits, type Limits as LimitsService } from '@svc/core/contracts'
import { service } from '@svc/testing'
import { expect } from 'chai'
import { toolOf } from './support/host.ts'
import { asked, came, KEY, keyed, PATHS, plain } from './support/keyed.ts'

const required = { auth: { required: true } }

describe('on every path of the tool server', () => {
  it('a Host that is not served, and an Origin that is not allowed, are refused', async () => {
    await using server = await keyed()
    for (const path of PATHS) {
      for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }]) {
        const reported = await asked(server, path, headers)
        expect([reported.status, reported.body.error_code], path).to.deep.equal([403, 'FORBIDDEN'])
      }
      expect(came(await asked(server, path, { origin: 'http://localhost:3000' })), path).to.equal(true)
      expect(await statusForHost(server.url, path), path).to.equal(403)
    }
  })

  it('requests are counted by the limits', async () => {
    let left = PATHS.length
    const counted: string[] = []
    const limits: LimitsService = {
      isActive: async () => true,
      async take({ principal }) {
        counted.push(principal.id)
        const now = { limit: PATHS.length, window: 60, reset: 0 }
        return left-- > 0
          ? { ...now, allowed: true, remaining: left, retryAfter: 0 }
          : { ...now, allowed: false, remaining: 0, retryAfter: 7 }
      },
    }
    await using server = await keyed({ mcp: required, give: [service(Limits, limits)] })
    for (const path of PATHS) expect(came(await asked(server, path, plain(KEY))), path).to.equal(true)
    for (const path of PATHS) {
      const reported = await asked(server, path, plain(KEY))
      expect([reported.status, reported.body.error_code, reported.headers.get('retry-after')], path).to.deep.equal([
        429,
        'RATE_LIMITED',
        '7',
      ])
    }
    expect(counted).to.deep.equal(Array.from({ length: 2 * PATHS.length }, () => 'mcp-key'))
  })

  it('a principal has so many requests open, and no more', async () => {
    const begun = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    const hold = toolOf(async () => {
      begun.resolve()
      await end.promise
      return { content: [] }
    })
    await using server = await keyed({ mcp: required, tools: { hold }, server: { max_requests_per_principal: 1 } })
    const first = server.ask.post('/tools/hold/call', {}, plain(KEY))
    await begun.promise
    const reported = await Promise.all(PATHS.map(path => asked(server, path, plain(KEY)))).finally(() => end.resolve())
    expect(reported.map(({ status, body }) => [status, body.error_code])).to.deep.equal(PATHS.map(() => [429, 'RATE_LIMITED']))
    expect((await first).status).to.equal(200)
  })
})

/** A name that was bent to this address: `fetch` sets Host itself. */
function statusForHost(url: string, path: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  request(`${url}${path}`, { headers: { host: 'evil.example' }, agent: false }, answer => {
    answer.resume()
    resolve(answer.statusCode ?? 0)
  })
    .on('error', reject)
    .end()
  return promise
}
