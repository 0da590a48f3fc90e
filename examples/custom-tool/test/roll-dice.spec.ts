import { Tools } from '@svc/core/contracts'
import { testHost, toolKit } from '@svc/testing'
import { expect } from 'chai'

interface Roll {
  readonly rolls: readonly number[]
  readonly sum: number
}

async function open() {
  const host = await testHost([new URL('..', import.meta.url)], { config: { tools: { dice: { most: 3 } } } })
  return { name: 'roll_dice', tool: host.slot(Tools).get('roll_dice')!, close: () => host.close() }
}

describe('roll_dice', () => {
  const cases = toolKit(open, {
    good: [
      { args: {}, expect: ({ structured }) => expect((structured as unknown as Roll).rolls).to.have.length(1) },
      {
        args: { sides: 2, count: 3 },
        expect({ structured }) {
          const { rolls, sum } = structured as unknown as Roll
          expect(rolls.every(roll => roll === 1 || roll === 2)).to.equal(true)
          expect(sum).to.equal(rolls.reduce((all, roll) => all + roll, 0))
        },
      },
    ],
    bad: [{ args: { sides: 1 } }, { args: { count: 4 } }, { args: { count: 'two' } }, { args: { colour: 'red' } }],
  })
  for (const testCase of cases) if (testCase.skipped === undefined) it(testCase.title, testCase.run)
})
