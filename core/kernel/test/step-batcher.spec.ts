import { setImmediate as endOfTurn } from 'node:timers/promises'
import { createStepBatcher } from '@svc/core'
import { expect } from 'chai'

describe('steps of many', () => {
  it('are done at once where they come alone', async () => {
    const together = createStepBatcher()
    const done: string[] = []
    for (const step of ['first', 'second', 'third']) {
      together(() => done.push(step))
      expect(done.at(-1)).to.equal(step)
      await endOfTurn()
    }
  })

  it('are done together, in order, once more than one comes in a turn, and at once again when that is over', async () => {
    const together = createStepBatcher()
    const done: string[] = []
    const come = (...steps: string[]) => steps.forEach(step => together(() => done.push(step)))
    come('a', 'b')
    await endOfTurn()
    come('c')
    expect(done, 'what comes first waits for those after it').to.deep.equal(['a', 'b'])
    come('d')
    await endOfTurn()
    expect(done).to.deep.equal(['a', 'b', 'c', 'd'])
    come('e')
    await endOfTurn()
    come('f')
    expect(done).to.deep.equal(['a', 'b', 'c', 'd', 'e', 'f'])
  })

  it('may begin steps of their own, which come with those of the next turn', async () => {
    const together = createStepBatcher()
    const done: string[] = []
    const come = (step: string, then = () => {}) =>
      together(() => {
        done.push(step)
        then()
      })
    come('a')
    come('b')
    await endOfTurn()
    come('c', () => come('e'))
    come('d')
    await endOfTurn()
    expect(done).to.deep.equal(['a', 'b', 'c', 'd'])
    await endOfTurn()
    expect(done).to.deep.equal(['a', 'b', 'c', 'd', 'e'])
  })
})
