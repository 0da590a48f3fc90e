import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { reachServer } from '@svc/runtime'
import { expect } from 'chai'
import { wait } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { auditLedger, CRASH_ENV as env, newLedger, startLoad } from './support/crash-loop.ts'
import { inNewHome, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { configureFew } from './support/tides.ts'

/** One round is the smoke case; `npm run soak:crash` kills for as long as you like. */
const ROUNDS = 1

const workerOf = async (home: string): Promise<number> => {
  using server = await reachServer(home)
  return server.info.workers[0]!.pid
}

describe('a service that is killed', () => {
  const itCurated = sideBySideIn(inNewHome)
  const it = sideBySideIn<string>(run =>
    inNewHome(async home => {
      await configureFew(home, {}, ['metrics'])
      await run(home)
    })
  )

  itCurated(`has every acknowledged turn afterwards, whole and in order under load`, async home => {
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
  }).timeout(120_000)

  it('does not count requests of a killed worker as running', async home => {
    const args = ['--workers', '2']
    const env = { SVC_CHAT__START_AFTER_MS: '0', SVC_CHAT__RESUME_S: '0' }
    await using service = await startService({ home, args, env })
    await service.seen(/"event":"worker_ready"/)
    const connect = () => createClient(service.url, { keepAlive: false })
    // connections are dealt out in turn: each worker has one of the streams
    const open = async () => {
      const body = { message: '/delay 60000\nlate' }
      const stream = await connect().stream({ method: 'POST', path: '/api/v1/chat/stream', body })
      await stream.until('start')
      return stream
    }
    /** The request that asks is among them. */
    const active = async () => Number(/^svc_requests_active (\d+)$/m.exec((await connect().get('/metrics')).text)?.[1])
    const streams = [await open(), await open()]
    expect(await active()).to.equal(3)
    const ended = streams.map(stream => stream.rest().catch(() => stream))
    process.kill(await workerOf(home), 'SIGKILL')
    const broken = await Promise.race(ended)
    await service.seen(/"event":"worker_ready"/, 2)
    for (let times = 0; times < 4; times++) expect(await active()).to.equal(2)
    await streams.find(stream => stream !== broken)!.leave()
    while ((await active()) !== 1) await wait()
    expect((await connect().get('/api/v1/status')).body).to.include({ requests_active: 1 })
  })

  it('replaces a killed worker and loses nothing that it acknowledged', async home => {
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
  }).timeout(60_000)

  it('releases the conversation of a turn whose worker was killed, long before the lease expires', async home => {
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

  it('releases the conversation of a turn whose server was killed, long before the lease expires', async home => {
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

  it('keeps a switched profile, override and mode after a worker crash; a new server resets them', async home => {
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
