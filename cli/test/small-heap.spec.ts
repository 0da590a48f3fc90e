import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'

const SMALL_HEAP = new URL('../src/small-heap.ts', import.meta.url).href

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
  it('collects the garbage of its start once it rests, and exposes no gc function', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', SCRIPT], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
    expect([said, code]).to.deep.equal(['collected undefined undefined\n', 0])
  })
})
