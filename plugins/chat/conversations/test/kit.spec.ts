import { Conversations, Store } from '@svc/core/contracts'
import { conversationsKit, testContext, testHost } from '@svc/testing'
import { expect } from 'chai'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

describe('conversations by the kit', () => {
  const open = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-conversations-'))
    const start = () =>
      testHost(['store-sqlite', 'conversations'].map(pluginFolder), { config: { store: { path: join(folder, 'svc.db') } } })
    const hosts = [await start(), await start()] as const
    return {
      conversations: hosts[0].service(Conversations),
      other: hosts[1].service(Conversations),
      searches: true,
      async close() {
        for (const host of hosts) await host.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  }
  for (const one of conversationsKit(open)) it(one.title, one.run)
})

describe('the full-text index of conversations', () => {
  it('agrees with the conversations after two processes have changed them at the same time', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-conversations-'))
    const start = () =>
      testHost(['store-sqlite', 'conversations'].map(pluginFolder), { config: { store: { path: join(folder, 'svc.db') } } })
    const hosts = [await start(), await start()] as const
    try {
      const admin = testContext({ principal: { id: 'root', scopes: ['admin'] } })
      const services = hosts.map(host => host.service(Conversations))
      const pick = <T>(list: readonly T[]) => list[Math.floor(Math.random() * list.length)]!
      const write = async (id?: string) => {
        const service = pick(services)
        const open = await service.begin(
          { ...(id === undefined ? {} : { conversationId: id }), waitMs: 20_000, history: 0 },
          admin
        )
        try {
          const part = { type: 'text', text: `word ${Math.random()}` } as const
          await service.append(open.ticket, [{ role: 'user', parts: [part] }], [], admin)
        } finally {
          await service.end(open.ticket, admin)
        }
        return open.conversationId
      }
      const ids = await Promise.all(Array.from({ length: 12 }, () => write()))
      const change = async () => {
        const id = pick(ids)
        const service = pick(services)
        const what = Math.random()
        if (what < 0.5) await write(id)
        else if (what < 0.7) await service.handOver(id, pick(['ann', 'ben']), admin)
        else if (what < 0.9) await service.update(id, { title: pick(['one', 'two']) }, admin)
        else if (what < 0.95) await service.delete(id, admin)
        else ids.push((await service.fork(id, {}, admin)).conversation.id)
        await sleep(Math.random() * 40)
      }
      // what is deleted is unknown
      await Promise.all(
        Array.from({ length: 6 }, async () => {
          for (let left = 60; left > 0; left--) await change().catch(() => {})
        })
      )
      const store = hosts[0].service(Store)
      const all = async (collection: string) => (await store.range(collection, { limit: 1000 }, admin)).records
      for (let left = 200; left > 0 && (await all('conversation_changes')).length > 0; left--) await sleep(50)
      expect((await all('conversation_changes')).map(({ key }) => key)).to.deep.equal([])
      const wanted: string[] = []
      for (const { key, value } of await all('conversations')) {
        const { owner, turns, named } = value as { owner: string; turns: number; named?: boolean }
        for (let turn = named ? 0 : 1; turn <= turns; turn++) wanted.push(`${key}/${String(turn).padStart(7, '0')} ${owner}`)
      }
      const texts = await all('conversation_texts')
      expect(texts.map(({ key, value }) => `${key} ${(value as { owner: string }).owner}`)).to.have.members(wanted)
      expect(wanted.length).to.be.above(20)
    } finally {
      for (const host of hosts) await host.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
})
