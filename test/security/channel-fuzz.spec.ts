import { expect } from 'chai'
import { fuzzChannel } from '../support/channel-fuzz.ts'

describe('the channel of an isolated plugin', function () {
  this.timeout(120_000)

  it('takes ten thousand mutated, random, torn and slow frames: the process of the host neither ends nor hangs', async () => {
    // another seed each time: a failure names it, and `npm run soak:channel -- 100 <seed>` sends the same frames
    const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000_000)
    const outcome = await fuzzChannel({ frames: 10_000, seed })
    expect(outcome.breaches, `seed ${seed}`).to.be.above(100)
    expect(outcome.longestMs, `seed ${seed}`).to.be.below(2000)
  })
})
