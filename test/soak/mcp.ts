// 10,000 calls to a tool server that dies again and again: node --conditions=svc-source test/soak/mcp.ts [calls]. Nothing of it may be left, and memory must not grow.
import { callThroughCrashes } from '../support/mcp-crashes.ts'

const CALLS = Number(process.argv[2] ?? 10_000)
const ROUNDS = 4
const MOST_GROWN = 16_000_000

const held = () => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
const handles = () => process.getActiveResourcesInfo().length

// the first line opens standard output, which is a handle
console.log(`${CALLS} calls …`)
await callThroughCrashes({ calls: 200, diesEach: 50, atOnce: 8 })
const before = { bytes: held(), handles: handles() }
let bad = 0
for (let round = 1; round <= ROUNDS; round++) {
  const outcome = await callThroughCrashes({ calls: CALLS / ROUNDS, diesEach: 199, atOnce: 8 })
  console.log(`round ${round}:`, { ...outcome, grown: held() - before.bytes, handles: handles() - before.handles })
  bad += outcome.left + outcome.others.length
}
if (bad > 0 || held() - before.bytes > MOST_GROWN || handles() > before.handles) {
  console.error('something is left')
  process.exitCode = 1
}
