import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Answer, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { inNewHome, startService } from '../support/service.ts'

const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }
const codeOf = ({ body }: Answer) => (body as { error_code?: string }).error_code

interface Limits {
  readonly enabled: boolean
  readonly client: string
  readonly limits: readonly { readonly name: string; readonly limit: number; readonly used: number; readonly remaining: number }[]
}

async function startLimited(home: string, by: 'address' | 'principal') {
  const rate_limit = { enabled: true, requests_per_minute: 50, requests_per_day: 1_000, by }
  await writeFile(join(home, 'svc.config.json'), JSON.stringify({ server: { rate_limit } }))
  const service = await startService({ home, env: AUTH, args: ['--workers', '2'] })
  await service.seen(/"event":"worker_ready"/)
  const as = async (name: string, scopes: string) => {
    const token = (await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home })).out.trim()
    const client = createClient(service.url, { keepAlive: false })
    return (path: string, accept?: string) =>
      client.send({
        method: 'GET',
        path,
        headers: { authorization: `Bearer ${token}`, ...(accept === undefined ? {} : { accept }) },
      })
  }
  return { service, as }
}

describe('limits and doctor', () => {
  it('tell what is left of the limits, from any worker, and only an administrator about others', () =>
    inNewHome(async home => {
      const { service, as } = await startLimited(home, 'principal')
      await using _service = service
      const [anna, root] = [await as('anna', 'read'), await as('root', 'read,admin')]
      for (let used = 1; used <= 6; used++) {
        const { body, headers, text } = await anna('/api/v1/limits')
        const { client, enabled, limits } = body as Limits
        expect({ client, enabled }, text).to.deep.equal({ client: 'token:anna', enabled: true })
        expect(limits.map(({ name, limit, used: own }) => [name, limit, own])).to.deep.equal([
          ['requests_per_minute', 50, used],
          ['requests_per_day', 1_000, used],
        ])
        expect(String(limits[0]!.remaining)).to.equal(headers['x-ratelimit-remaining'])
      }
      const asked = (await root('/api/v1/limits?principal=token:anna')).body as Limits
      expect(asked).to.deep.include({ client: 'token:anna' })
      expect(asked.limits[0]!.used).to.equal(6)
      expect(((await root('/api/v1/limits?principal=unknown')).body as Limits).limits[0]!.used).to.equal(0)
      const refused = await anna('/api/v1/limits?principal=token:root')
      expect([refused.status, codeOf(refused)]).to.deep.equal([403, 'FORBIDDEN'])
      for (const query of ['address=127.0.0.1', 'principle=x', 'principal=', `principal=${'x'.repeat(600)}`])
        expect((await root(`/api/v1/limits?${query}`)).status, query).to.equal(400)
    }))

  it('examine the server as a record and as a stream, for administrators only', () =>
    inNewHome(async home => {
      const { service, as } = await startLimited(home, 'address')
      await using _service = service
      const [anna, root] = [await as('anna', 'read'), await as('root', 'read,admin')]
      expect((await anna('/api/v1/doctor')).status).to.equal(403)
      const whole = await root('/api/v1/doctor')
      expect(whole.status, whole.text).to.equal(200)
      const { ok, findings } = whole.body as { ok: boolean; findings: { name: string; state: string; detail?: object }[] }
      expect(ok).to.equal(true)
      const names = findings.map(({ name }) => name)
      expect(names).to.include.members(['node', 'database', 'providers', 'authentication bearer'])
      expect(findings.find(({ name }) => name === 'database')!.detail).to.include.keys('path', 'free_bytes')
      expect(whole.text).not.to.include(AUTH.SVC_API_KEY)
      const { events, headers } = await root('/api/v1/doctor', 'text/event-stream')
      expect(headers['content-type']).to.match(/^text\/event-stream/)
      const shown = events.filter(event => !event.comment)
      expect(shown.slice(0, -1).map(({ data }) => (data as unknown as { name: string }).name)).to.have.members(names)
      expect(shown.at(-1)).to.deep.include({ event: 'end', data: { ok: true, findings: names.length } })
      expect((await root('/api/v1/doctor?deep=1')).status).to.equal(400)
      const address = await root('/api/v1/limits?address=192.0.2.7')
      expect(address.body).to.deep.include({ client: '192.0.2.7' })
      for (const query of ['address=nowhere', 'principal=token:anna'])
        expect((await root(`/api/v1/limits?${query}`)).status).to.equal(400)
    }))
})
