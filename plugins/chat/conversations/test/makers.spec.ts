import { expect } from 'chai'
import { ANN, by, person, outcomeOf, TURN, two, unknown } from './support/two.ts'

const wish = (conversationId: string, waitMs = 60_000) => ({ conversationId, waitMs, history: 10 })
const ASK = 'conversations.ask'
const MAKING = 'conversations.making'
const madeUp = () => `conv_${crypto.randomUUID().replaceAll('-', '')}`

describe('a turn on a conversation that another worker is making', () => {
  it('waits until it is made, and goes on with it', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    const waiting = [1, 2, 3].map(async () => {
      const open = await both.other.begin(wish(id), ANN)
      await both.other.append(open.ticket, TURN, [], ANN)
      await both.other.end(open.ticket, ANN)
      return open.turns.length
    })
    await both.said(MAKING)
    await both.makes.append(ticket, TURN, [], ANN)
    await both.makes.end(ticket, ANN)
    expect((await Promise.all(waiting)).toSorted((a, b) => a - b)).to.deep.equal([1, 2, 3])
    expect((await both.other.get(id, ANN)).messageCount).to.equal(4)
  })

  it('waits no longer than it may', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    for (const waitMs of [0, 5]) expect(await outcomeOf(both.other.begin(wish(id, waitMs), ANN))).to.match(/^CONVERSATION_BUSY /)
    await both.makes.end(ticket, ANN)
  })

  it('finds none where the turn that made it left nothing, or it was deleted', async () => {
    await using both = await two()
    for (const over of ['end', 'delete']) {
      const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
      const waiting = outcomeOf(both.other.begin(wish(id), ANN))
      both.news.length = 0
      await both.said(MAKING)
      if (over === 'delete') await both.makes.delete(id, ANN)
      else await both.makes.end(ticket, ANN)
      expect(await waiting).to.equal(unknown(id))
      await both.makes.end(ticket, ANN)
    }
  })

  it('finds none when that worker ends', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    const waiting = outcomeOf(both.other.begin(wish(id), ANN))
    const { holder } = (await both.said(MAKING)).message as { holder: string }
    await both.gone('another/1/')
    await both.gone(holder)
    expect(await waiting).to.equal(unknown(id))
    await both.makes.end(ticket, ANN)
  })

  it('is not even kept waiting for somebody else’s: that is asked for like one that never was', async () => {
    await using both = await two()
    const { ticket, conversationId: young } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    for (const id of [young, madeUp()]) {
      both.news.length = 0
      expect(await outcomeOf(both.other.begin(wish(id), by(person('eve', 'chat'))))).to.equal(unknown(id))
      expect(both.topics()).to.deep.equal([ASK])
    }
    await both.makes.end(ticket, ANN)
  })

  it('asks no worker for what can be none, and once for a thousand unknown ids', async () => {
    await using both = await two()
    for (const id of ['', 'conv_none', `${madeUp()}0`, '__proto__'])
      expect(await outcomeOf(both.other.begin(wish(id), ANN))).to.equal(unknown(id))
    expect(both.topics()).to.deep.equal([])
    const ids = Array.from({ length: 1000 }, madeUp)
    expect(await Promise.all(ids.map(id => outcomeOf(both.other.begin(wish(id), ANN))))).to.deep.equal(ids.map(unknown))
    expect(both.topics().length).to.be.within(1, 2)
  })

  it('costs one that is kept no question', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    await both.makes.append(ticket, TURN, [], ANN)
    await both.makes.end(ticket, ANN)
    const open = await both.other.begin(wish(id), ANN)
    await both.other.end(open.ticket, ANN)
    expect(both.topics()).to.deep.equal([])
  })
})
