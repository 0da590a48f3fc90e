import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'
import { until } from '../support/wait.ts'
import { type Client, createClient } from '../support/client.ts'

const PLUGIN = 'svc-plugin-liar'

/** It writes frames of its own at descriptor 3, and puts other values in the place of its results, past all that the host's code in its process checks. */
const CODE = `import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { deserialize, serialize } from 'node:v8'
import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const framed = bytes => {
  const head = Buffer.alloc(4)
  head.writeUInt32LE(bytes.length)
  return Buffer.concat([head, bytes])
}
const graph = () => {
  let one = { text: 'x' }
  for (let at = 0; at < 40; at++) one = [one, one]
  return one
}
const loop = () => {
  const one = {}
  one.one = one
  return one
}
const RESULTS = {
  'a shared graph': () => ({ content: [{ type: 'text', text: 'x' }], structured: graph() }),
  'a graph that holds itself': () => ({ content: [{ type: 'text', text: 'x' }], structured: loop() }),
  'a sparse result': () => ({ content: Object.assign([], { length: 2 ** 32 - 1 }) }),
}
const SPARSE = Buffer.from([255, 15, 97, 255, 255, 255, 255, 15, 64, 0, 255, 255, 255, 255, 15])
const use = { principal: { id: 'x', scopes: [] }, requestId: 'x', aborted: { message: { toString: 1, valueOf: 1 } } }
const FRAMES = {
  'a sparse list': () => SPARSE,
  'an abort that has no words': () => serialize([[1, 1_000_000, 'host_bridge', 'log', ['info', {}, 'x'], use]]),
}
let next
const write = Socket.prototype.write
Socket.prototype.write = function (frame, ...more) {
  if (next && Buffer.isBuffer(frame) && frame.includes('REPLACE')) {
    const messages = deserialize(frame.subarray(4))
    for (const message of messages) if (message[0] === 5) message[2] = RESULTS[next]()
    frame = framed(serialize(messages))
    next = undefined
  }
  return write.call(this, frame, ...more)
}
export default definePlugin({
  setup(scope) {
    const call = async ({ what }) => {
      if (FRAMES[what]) writeSync(3, framed(FRAMES[what]()))
      else if (RESULTS[what]) next = what
      return { content: [{ type: 'text', text: RESULTS[what] ? 'REPLACE' : 'at peace' }] }
    }
    const parameters = { type: 'object', properties: { what: { type: 'string' } } }
    scope.add(Tools, 'lie', { description: 'Lies', category: 'text', effects: [], parameters, call })
  },
})
`

describeIsolated('a frame of an isolated plugin', function () {
  this.timeout(60_000)
  let attacked: Attacked
  let client: Client
  before(async () => {
    const plugins = [{ name: PLUGIN, code: CODE, svc: { contributes: { tools: ['lie'] } } }]
    const config = { isolation: { restarts: 100 }, server: { hang_timeout_ms: 2000 } }
    attacked = await startAttacked({ plugins, config })
    client = createClient(attacked.service.url)
  })
  after(async () => {
    client?.close()
    await attacked?.[Symbol.asyncDispose]()
  })
  const lie = (what: string) => client.post('/api/v1/chat', { message: `/tool lie ${JSON.stringify({ what })}` })
  const endings = () =>
    attacked.service
      .output()
      .split('\n')
      .filter(line => line.includes('isolated plugin has ended'))

  const back = () =>
    until(
      () => lie('nothing'),
      ({ text }) => text.includes('at peace')
    )

  const CASES: Readonly<Record<string, RegExp>> = {
    'a sparse list': /more than \d+ values/,
    'a shared graph': /more than \d+ values/,
    'a graph that holds itself': /more than \d+ values|nested deeper/,
    'a sparse result': /more than \d+ values/,
  }
  for (const [what, why] of Object.entries(CASES))
    it(`ends that plugin where it is ${what}: its calls fail, and the worker serves on`, async () => {
      const before = endings().length
      const turn = await lie(what)
      expect(turn.status, turn.text).to.equal(200)
      expect(turn.text).to.match(/lie failed: .*is gone/)
      await until(
        async () => endings().length,
        count => count > before
      )
      expect(endings().at(-1)).to.match(why).and.contain(PLUGIN)
      expect((await client.get('/health')).status).to.equal(200)
      await back()
      expect(attacked.service.output()).to.not.match(/worker_exited|worker_hung/)
    })

  it('costs nothing but its call where an abort has no words', async () => {
    expect((await lie('an abort that has no words')).status).to.equal(200)
    await back()
    expect(attacked.service.output()).to.not.match(/worker_exited|worker_hung/)
  })
})
