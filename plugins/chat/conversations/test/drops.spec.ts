import { expect } from 'chai'
import { ANN, by, person, outcomeOf, TURN, two, unknown } from './support/two.ts'

describe('a conversation in the making, asked for through another worker', () => {
  it('is deleted once, and its turn is not kept', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    expect(await outcomeOf(both.other.delete(id, ANN))).to.equal('done')
    expect(await outcomeOf(both.other.delete(id, ANN))).to.equal(unknown(id))
    expect(await outcomeOf(both.makes.append(ticket, TURN, [], ANN))).to.equal(unknown(id))
    await both.makes.end(ticket, ANN)
    expect(await outcomeOf(both.makes.get(id, ANN))).to.equal(unknown(id))
  })

  it('is unknown to others, as one that is kept and one that never was, and is asked for in the same way', async () => {
    await using both = await two()
    const { ticket, conversationId: young } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    const kept = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    await both.makes.append(kept.ticket, TURN, [], ANN)
    await both.makes.end(kept.ticket, ANN)
    for (const id of [young, kept.conversationId, 'conv_none']) {
      both.news.length = 0
      expect(await outcomeOf(both.other.delete(id, by(person('eve', 'chat'))))).to.equal(unknown(id))
      expect(both.topics()).to.deep.equal(['conversations.drop'])
    }
    expect(await outcomeOf(both.makes.append(ticket, TURN, [], ANN))).to.equal('done')
    await both.makes.end(ticket, ANN)
  })

  it('is deleted by a principal that may delete everybody’s', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    expect(await outcomeOf(both.other.delete(id, by(person('root', 'admin'))))).to.equal('done')
    await both.makes.end(ticket, ANN)
  })

  it('is deleted while it is being kept', async () => {
    await using both = await two()
    const { ticket, conversationId: id } = await both.makes.begin({ waitMs: 0, history: 1 }, ANN)
    const [, deleted] = await Promise.all([both.makes.append(ticket, TURN, [], ANN), outcomeOf(both.other.delete(id, ANN))])
    expect(deleted).to.equal('done')
    await both.makes.end(ticket, ANN)
    expect(await outcomeOf(both.makes.get(id, ANN))).to.equal(unknown(id))
  })
})
