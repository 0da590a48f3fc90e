import { timelyId, timeOf } from '@svc/storage-kit'
import { expect } from 'chai'

describe('a timely id', () => {
  it('is a UUID of version 7 with the time in it, and another one each time', () => {
    const [before, ids, after] = [Date.now(), Array.from({ length: 1_000 }, timelyId), Date.now()]
    for (const id of ids) {
      expect(id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(timeOf(id)).to.be.within(before, after)
    }
    expect(new Set(ids).size).to.equal(1_000)
  })

  it('is the only kind of id that has a time', () => {
    for (const id of ['', 'mine', crypto.randomUUID(), `${timelyId()}x`, timelyId().toUpperCase()])
      expect(timeOf(id)).to.deep.equal(Number.NaN)
  })
})
