import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { reachServer } from '@svc/core/processes'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { auditLedger, CRASH_ENV as env, newLedger, startLoad } from './support/crash-loop.ts'
import { newHome, startService } from './support/service.ts'

const ROUNDS = 8

const workerOf = async (home: string): Promise<number> => {
  using server = await reachServer(home)
  return server.info.workers[0]!.pid
}

describe('a service that is killed', () => {
  let home = ''
  beforeEach(async () => {
    home = await newHome()
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it(`has every acknowledged turn afterwards, whole and in order, ${ROUNDS} times under load`, async function () {
    this.timeout(120_000)
    const ledger = newLedger()
    for (let seed = 1; seed <= ROUNDS; seed++) {
      const service = await startService({ home, env })
      const load = startLoad(service.url, ledger, { clients: 6, seed })
      await load.reached(10 + ((seed * 17) % 40))
      await service.kill()
      await load.broken()
    }
    await using service = await startService({ home, env })
    expect(await auditLedger(service.url, ledger)).to.deep.equal([])
    expect(ledger.acknowledged).to.be.greaterThan(ROUNDS * 10)
  })

  it('goes on with a new worker when its worker is killed: nothing acknowledged is lost', async function () {
    this.timeout(60_000)
    await using service = await startService({ home })
    const ledger = newLedger()
    for (const seed of [1, 2]) {
      const load = startLoad(service.url, ledger, { clients: 6, seed })
      await load.reached(30)
      const ready = service.seen(/"event":"worker_ready"/, seed)
      process.kill(await workerOf(home), 'SIGKILL')
      await load.broken()
      await ready
    }
    expect(await auditLedger(service.url, ledger)).to.deep.equal([])
    const health = await fetch(`${service.url}/health`, { headers: { connection: 'close' } })
    expect(health.status).to.equal(200)
  })

  it('frees the conversation of a turn that died with its worker, long before its lease runs out', async () => {
    // the lease is half a minute, a turn waits for five seconds
    await using service = await startService({ home, env: { SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__QUEUE_TIMEOUT_MS: '5000' } })
    const client = createClient(service.url, { keepAlive: false })
    const first = await client.post('/api/v1/chat', { message: 'one' })
    const { conversation_id } = first.body as { conversation_id: string }
    const broken = await client.stream({
      method: 'POST',
      path: '/api/v1/chat/stream',
      body: { message: '/delay 60000\ntwo', conversation_id },
    })
    await broken.until('start')
    const ready = service.seen(/"event":"worker_ready"/)
    process.kill(await workerOf(home), 'SIGKILL')
    await ready
    const next = await client.post('/api/v1/chat', { message: 'three', conversation_id })
    expect(next.body).to.include({ response: 'You said: three (turn 2)' })
  })

  it('frees the conversation of a turn that died with its whole server, long before its lease runs out', async () => {
    const shared = { home, env: { SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__QUEUE_TIMEOUT_MS: '5000' } }
    const killed = await startService(shared)
    const client = createClient(killed.url, { keepAlive: false })
    const first = await client.post('/api/v1/chat', { message: 'one' })
    const { conversation_id } = first.body as { conversation_id: string }
    const body = { message: '/delay 60000\ntwo', conversation_id }
    const broken = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body })
    await broken.until('start')
    await killed.kill()
    await using service = await startService(shared)
    const next = await createClient(service.url, { keepAlive: false }).post('/api/v1/chat', { message: 'three', conversation_id })
    expect(next.body).to.include({ response: 'You said: three (turn 2)' })
  })

  it('keeps the profile, override and mode that were switched, but a new server begins anew', async () => {
    const post = async (url: string, path: string, body: unknown) => {
      const client = createClient(url, { keepAlive: false })
      expect((await client.post(path, body)).status).to.equal(200)
    }
    const effective = async (url: string) => (await createClient(url, { keepAlive: false }).get('/api/v1/config/effective')).body
    const switched = { profile: 'other', mode: 'plan', override: { provider: 'local', model: 'local-small' } }
    await writeFile(join(home, 'profiles.yaml'), 'profiles: { default: {}, other: {} }\n')
    {
      await using service = await startService({ home })
      await post(service.url, '/api/v1/profile/switch', { profile: 'other' })
      await post(service.url, '/api/v1/mode/switch', { mode: 'plan' })
      await post(service.url, '/api/v1/model/switch', switched.override)
      const ready = service.seen(/"event":"worker_ready"/)
      process.kill(await workerOf(home), 'SIGKILL')
      await ready
      expect(await effective(service.url)).to.deep.include(switched)
    }
    await using service = await startService({ home })
    expect(await effective(service.url)).to.deep.include({ profile: 'default', mode: 'build', override: null })
  })
})
