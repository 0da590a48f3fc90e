import { startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { describeWith } from './support/needs.ts'
import { startNode } from './support/nodes.ts'

/** The short test of A12 of the acceptance of clusters; `redis.spec.ts` has the others. */
describeWith('redis', 'a server with redis.url', () => {
  it('keeps all data and begins new counts when Redis is flushed', async () => {
    await using redis = await startRedis()
    const server = { rate_limit: { enabled: true, requests_per_minute: 1_000_000, requests_per_day: 1_000_000 } }
    const config = { server, redis: { url: redis.url, use: ['counts', 'cache'] } }
    await using service = await startNode({ config, few: ['rate-limit'] })
    const client = createClient(service.url, { keepAlive: false })
    const chat = async (message: string, conversation_id?: string) =>
      (await client.post('/api/v1/chat', { message, conversation_id })).body as { conversation_id: string; response: string }
    const { conversation_id } = await chat('one')
    const counts = () => redis.command('KEYS', 'svc:*:counts:rate_limit*')
    expect(await counts()).to.have.length(1)
    await redis.flush()
    await redis.command('SCRIPT', 'FLUSH')
    expect(await counts()).to.have.length(0)
    expect((await client.get('/api/v1/status')).status).to.equal(200)
    expect(await chat('next', conversation_id)).to.include({ response: 'You said: next (turn 2)' })
    expect(await counts()).to.have.length(1)
  }).timeout(60_000)
})
