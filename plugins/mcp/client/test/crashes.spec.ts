import { expect } from 'chai'
import { callThroughCrashes } from '../../../../test/support/mcp-crashes.ts'

describe('many calls to a program that dies again and again', () => {
  it('each have an answer, and nothing is left of any of its processes', async () => {
    const outcome = await callThroughCrashes({ calls: 300, diesEach: 60, atOnce: 8 })
    expect(outcome.others).to.deep.equal([])
    expect(outcome.good + outcome.lost).to.equal(300)
    expect(outcome.starts).to.be.within(4, 7)
    expect(outcome.lost).to.be.within(4, 7 * 8)
    expect(outcome.left).to.equal(0)
  })
})
