import type { Principal } from '@svc/core'
import { type Conversation, Conversations, type StoredMessage } from '@svc/core/contracts'
import { testHost, testContext } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const startHost = (config = {}) =>
  testHost(['store-memory', 'conversations'].map(pluginFolder), { config: { conversations: config } })

const said = (role: 'user' | 'assistant', text: string): StoredMessage => ({ role, parts: [{ type: 'text', text }] })
const turn = (text: string) => [said('user', text), said('assistant', `re: ${text}`)]
const person = (id: string, ...scopes: string[]): Principal => ({ id, scopes })

async function write(service: Conversations, text: string, conversationId?: string, ctx = testContext()) {
  const open = await service.begin({ ...(conversationId ? { conversationId } : {}), waitMs: 1000, history: 10 }, ctx)
  await service.append(open.ticket, turn(text), [], ctx)
  await service.end(open.ticket, ctx)
  return open.conversationId
}

async function codeOfThrown(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'nothing was thrown'
}

describe('conversations', () => {
  it('keeps turns and shows them as user and assistant messages', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, 'one')
    await write(service, 'two', id)
    const kept: Conversation = await service.get(id, testContext())
    expect(kept.messages.map(message => message.content)).to.deep.equal(['one', 're: one', 'two', 're: two'])
    expect(kept).to.include({ messageCount: 4, owner: 'system' })
    expect(kept.updatedAt >= kept.createdAt).to.equal(true)
  })

  it('shows the rounds of one turn as one message of the assistant', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const open = await service.begin({ waitMs: 0, history: 10 }, testContext())
    const rounds = [
      said('user', 'q'),
      said('assistant', 'let me look. '),
      { role: 'tool', parts: [] } as const,
      said('assistant', 'found it'),
    ]
    await service.append(open.ticket, rounds, [], testContext())
    await service.end(open.ticket, testContext())
    const kept = await service.get(open.conversationId, testContext())
    expect(kept.messages).to.deep.equal([
      { role: 'user', content: 'q' },
      { role: 'assistant', content: 'let me look. found it' },
    ])
  })

  it('lets one turn at a time write, in the order of asking', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, 'first')
    const order: number[] = []
    await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const open = await service.begin({ conversationId: id, waitMs: 5000, history: 100 }, testContext())
        order.push(at)
        expect(open.turns).to.have.length(order.length)
        await service.append(open.ticket, turn(`${at}`), [], testContext())
        await service.end(open.ticket, testContext())
      })
    )
    expect(order).to.deep.equal(Array.from({ length: 20 }, (_, at) => at))
    expect((await service.get(id, testContext())).messageCount).to.equal(42)
  })

  it('waits for the turn that is making a conversation whose id was sent already', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const first = await service.begin({ waitMs: 0, history: 10 }, testContext())
    const wish = { conversationId: first.conversationId, history: 10 }
    expect(await codeOfThrown(service.begin({ ...wish, waitMs: 5 }, testContext()))).to.equal('CONVERSATION_BUSY')
    const second = service.begin({ ...wish, waitMs: 5000 }, testContext())
    await service.append(first.ticket, turn('one'), [], testContext())
    await service.end(first.ticket, testContext())
    const open = await second
    expect(open.turns).to.have.length(1)
    await service.end(open.ticket, testContext())
  })

  it('does not wait for ever for a conversation that was never kept', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const first = await service.begin({ waitMs: 0, history: 10 }, testContext())
    const second = service.begin({ conversationId: first.conversationId, waitMs: 5000, history: 10 }, testContext())
    await service.end(first.ticket, testContext())
    expect(await codeOfThrown(second)).to.equal('CONVERSATION_UNKNOWN')
  })

  it('says busy when the turn before does not end in time', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, 'first')
    const open = await service.begin({ conversationId: id, waitMs: 0, history: 1 }, testContext())
    expect(await codeOfThrown(service.begin({ conversationId: id, waitMs: 5, history: 1 }, testContext()))).to.equal(
      'CONVERSATION_BUSY'
    )
    await service.end(open.ticket, testContext())
    await write(service, 'second', id)
  })

  it('shows a principal its own conversations only, in the same words as for an unknown one', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const ann = testContext({ principal: person('ann', 'chat') })
    const bob = testContext({ principal: person('bob', 'chat') })
    const id = await write(service, 'mine', undefined, ann)
    for (const work of [
      service.get(id, bob),
      service.delete(id, bob),
      service.begin({ conversationId: id, waitMs: 0, history: 1 }, bob),
    ]) {
      expect(await codeOfThrown(work)).to.equal('CONVERSATION_UNKNOWN')
    }
    expect((await service.list({ limit: 10 }, bob)).conversations).to.deep.equal([])
    expect((await service.list({ limit: 10 }, ann)).conversations.map(conversation => conversation.id)).to.deep.equal([id])
    expect((await service.get(id, testContext({ principal: person('root', 'admin') }))).owner).to.equal('ann')
  })

  it('keeps no stranger waiting for a conversation in the making: the time would tell that it is there', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const open = await service.begin({ waitMs: 0, history: 1 }, testContext({ principal: person('anna') }))
    const wish = { conversationId: open.conversationId, waitMs: 60_000, history: 1 }
    expect(await codeOfThrown(service.begin(wish, testContext({ principal: person('ben') })))).to.equal('CONVERSATION_UNKNOWN')
    await service.end(open.ticket, testContext())
  })

  it('keeps the owner when an admin writes into the conversation', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, 'mine', undefined, testContext({ principal: person('ann', 'chat') }))
    await write(service, 'theirs', id, testContext({ principal: person('root', 'admin') }))
    expect((await service.get(id, testContext())).owner).to.equal('ann')
  })

  it('lists the newest first, page by page', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const ids: string[] = []
    for (let at = 0; at < 5; at++) ids.unshift(await write(service, `${at}`))
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await service.list({ limit: 2, ...(cursor ? { cursor } : {}) }, testContext())
      seen.push(...page.conversations.map(conversation => conversation.id))
      cursor = page.next
    } while (cursor)
    expect(seen.toSorted()).to.deep.equal(ids.toSorted())
    expect(await codeOfThrown(service.list({ limit: 2, cursor: 'nonsense' }, testContext()))).to.equal('INVALID_VALUE')
  })

  it('deletes once; a second time it is unknown, and a turn that was open cannot bring it back', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, 'one')
    const open = await service.begin({ conversationId: id, waitMs: 0, history: 1 }, testContext())
    await service.delete(id, testContext())
    expect(await codeOfThrown(service.append(open.ticket, turn('late'), [], testContext()))).to.equal('CONVERSATION_UNKNOWN')
    await service.end(open.ticket, testContext())
    expect(await codeOfThrown(service.get(id, testContext()))).to.equal('CONVERSATION_UNKNOWN')
    expect(await codeOfThrown(service.delete(id, testContext()))).to.equal('CONVERSATION_UNKNOWN')
  })

  it('deletes a conversation in the making: its turn is not kept, and a caller that waited for it finds none', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const open = await service.begin({ waitMs: 0, history: 1 }, testContext())
    const id = open.conversationId
    const stranger = testContext({ principal: person('eve') })
    expect(await codeOfThrown(service.delete(id, stranger))).to.equal('CONVERSATION_UNKNOWN')
    const waiting = service.begin({ conversationId: id, waitMs: 60_000, history: 1 }, testContext())
    await service.delete(id, testContext())
    expect(await codeOfThrown(waiting)).to.equal('CONVERSATION_UNKNOWN')
    const late = service.begin({ conversationId: id, waitMs: 60_000, history: 1 }, testContext())
    expect(await codeOfThrown(late)).to.equal('CONVERSATION_UNKNOWN')
    expect(await codeOfThrown(service.delete(id, testContext()))).to.equal('CONVERSATION_UNKNOWN')
    expect(await codeOfThrown(service.append(open.ticket, turn('late'), [], testContext()))).to.equal('CONVERSATION_UNKNOWN')
    await service.end(open.ticket, testContext())
    expect(await codeOfThrown(service.get(id, testContext()))).to.equal('CONVERSATION_UNKNOWN')
  })

  it('deletes a conversation that is being kept at this very moment', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const open = await service.begin({ waitMs: 0, history: 1 }, testContext())
    const keeping = service.append(open.ticket, turn('one'), [], testContext())
    await Promise.all([keeping, service.delete(open.conversationId, testContext())])
    await service.end(open.ticket, testContext())
    expect(await codeOfThrown(service.get(open.conversationId, testContext()))).to.equal('CONVERSATION_UNKNOWN')
  })

  it('refuses a turn beyond the limit of messages', async () => {
    await using host = await startHost({ max_messages: 2 })
    const service = host.service(Conversations)
    const id = await write(service, 'one')
    expect(await codeOfThrown(write(service, 'two', id))).to.equal('CONVERSATION_FULL')
  })

  it('begins no conversation with an id that a client made up', async () => {
    await using host = await startHost()
    expect(await codeOfThrown(write(host.service(Conversations), 'x', 'my-own-id'))).to.equal('CONVERSATION_UNKNOWN')
  })

  it('reads conversations longer than a page of the store whole', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, '0')
    for (let at = 1; at < 1100; at++) await write(service, `${at}`, id)
    const { messages } = await service.get(id, testContext())
    expect(messages).to.have.length(2200)
    expect(messages.at(-2)?.content).to.equal('1099')
  })
})
