// Hostile frames to the host's side of the channel of an isolated plugin: node --conditions=svc-source test/soak/channel.ts [frames] [seed]. A failure names its seed.
import { fuzzChannel } from '../support/channel-fuzz.ts'

const FRAMES = Number(process.argv[2] ?? 1_000_000)
const SEED = Number(process.argv[3] ?? Date.now() % 1_000_000_000)
const EACH = 100_000

console.log(`${FRAMES} frames from seed ${SEED} …`)
const began = performance.now()
const outcome = await fuzzChannel({
  frames: FRAMES,
  seed: SEED,
  onRound: (sent, seed) => {
    if (sent % EACH === 0) console.log(`${sent} frames, seed ${seed}, ${Math.round((performance.now() - began) / 1000)} s`)
  },
})
console.log({ ...outcome, seconds: Math.round((performance.now() - began) / 1000) })
