import { rm } from 'node:fs/promises'
import { findServers } from '@svc/runtime'
import { expect } from 'chai'
import { type Client, createClient } from './support/client.ts'
import { newHome, startService } from './support/service.ts'

const effective = async (client: Client) => (await client.get('/api/v1/config/effective')).body

describe('two servers that share a home', () => {
  let home = ''
  beforeEach(async () => {
    home = await newHome()
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  it('have a state each, a control socket each, and the same conversations', async () => {
    await using service = await startService({ home })
    await using two = await startService({ home, args: ['--mode', 'review'] })
    const [first, second] = [service, two].map(({ url }) => createClient(url, { keepAlive: false })) as [Client, Client]
    await first.post('/api/v1/mode/switch', { mode: 'plan' })
    await first.post('/api/v1/model/switch', { provider: 'local', model: 'local-small' })
    expect(await effective(first)).to.deep.include({ mode: 'plan', override: { provider: 'local', model: 'local-small' } })
    expect(await effective(second)).to.deep.include({ mode: 'review', override: null, model: 'local-1' })
    expect((await second.post('/api/v1/chat', { message: 'a' })).body).to.include({ model: 'local-1' })

    const { conversation_id } = (await first.post('/api/v1/chat', { message: 'over there' })).body as { conversation_id: string }
    expect((await second.get(`/api/v1/conversations/${conversation_id}`)).body).to.include({ message_count: 2 })

    const found = await findServers(home)
    expect(found.map(server => server.info.url).toSorted()).to.deep.equal([service.url, two.url].toSorted())
    for (const server of found) server[Symbol.dispose]()
  })
})
