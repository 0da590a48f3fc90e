import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { youngGeneration } from '../processes/small-heap.ts'

const SMALL_HEAP = new URL('../processes/small-heap.ts', import.meta.url).href

/** Says `collected` once what the start has left is gone; a process that allocates nothing would keep it. */
const SCRIPT = `
import { runInNewContext } from 'node:vm'
import { collectAfterStart } from '${SMALL_HEAP}'
let left = { of: 'the start' }
const kept = new WeakRef(left)
left = undefined
collectAfterStart()
const looks = setInterval(() => {
  if (kept.deref()) return
  clearInterval(looks)
  console.log('collected', typeof globalThis.gc, runInNewContext('typeof gc'))
}, 50)
`

describe('the heap of a worker', () => {
  it('has the same young generation on every machine with 2 GiB of memory or more', () => {
    const gib = (count: number) => youngGeneration(count * 1024 ** 3, '')
    expect([gib(1), gib(2), gib(8)]).to.deep.equal([[], ['--max-semi-space-size=32'], ['--max-semi-space-size=32']])
  })

  it('has the sizes that the operator sets', () => {
    for (const given of ['--max-semi-space-size=16', '--max-old-space-size=96', '--max_old_space_size=96 --inspect'])
      expect(youngGeneration(1024 ** 4, given), given).to.deep.equal([])
  })

  it('collects the garbage of its start once it rests, and exposes no gc function', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', SCRIPT], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    expect([said, code]).to.deep.equal(['collected undefined undefined\n', 0])
  })
})
