import { rm } from 'node:fs/promises'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { type Client, createClient } from './support/client.ts'
import { describeWith } from './support/needs.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { until } from './support/wait.ts'

describeWith('postgres', 'svc serve with store.url: postgres://…', () => {
  let postgres: Postgres
  const homes: string[] = []
  before(async () => (postgres = await startPostgres({ settings: { max_connections: 60 } })))
  after(async () => {
    await postgres?.[Symbol.asyncDispose]()
    for (const home of homes) await rm(home, { recursive: true, force: true })
  })

  const start = async (more: Record<string, string> = {}, args: readonly string[] = []): Promise<Service> => {
    const home = await newHome()
    homes.push(home)
    return startService({ home, args, env: { SVC_STORE__URL: postgres.url, ...more } })
  }
  const clientOf = ({ url }: Service): Client => createClient(url, { keepAlive: false })

  it('keeps conversations of two workers, over a restart and a kill', async () => {
    const service = await start({}, ['--workers', '2'])
    let id: string
    {
      await using _ = service
      await service.seen(/"event":"worker_ready"/)
      const client = clientOf(service)
      expect((await client.get('/health')).body).to.include({ status: 'healthy' })
      const { conversation_id } = (await client.post('/api/v1/chat', { message: 'turn 1' })).body as { conversation_id: string }
      id = conversation_id
      for (let turn = 2; turn <= 6; turn++) {
        const { body } = await client.post('/api/v1/chat', { message: `turn ${turn}`, conversation_id: id })
        expect(body).to.include({ response: `You said: turn ${turn} (turn ${turn})` })
      }
      await service.kill()
    }
    await using again = await startService({ home: service.home, env: { SVC_STORE__URL: postgres.url } })
    expect((await clientOf(again).get(`/api/v1/conversations/${id}`)).body).to.include({ message_count: 12 })
  })

  it('serves two servers with one database, and needs no file for it', async () => {
    const env = { SVC_CLUSTER__NAME: 'shop' }
    await using one = await start(env)
    await using two = await start(env)
    const [first, second] = [clientOf(one), clientOf(two)]
    const { conversation_id } = (await first.post('/api/v1/chat', { message: 'over there' })).body as { conversation_id: string }
    expect((await second.get(`/api/v1/conversations/${conversation_id}`)).body).to.include({ message_count: 2 })
    await first.post('/api/v1/mode/switch', { mode: 'plan' })
    await until(
      async () => (await second.get('/api/v1/config/effective')).body as { mode: string },
      ({ mode }) => mode === 'plan'
    )
  })
})
