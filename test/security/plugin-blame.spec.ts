import { once } from 'node:events'
import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'
import { until } from '../support/wait.ts'
import { type Client, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'

/** A weak place in the worker itself: a service in the process of the host that ends or blocks it, as asked. */
const TRAP = `import { definePlugin, defineService } from '@svc/core'
import { Tools } from '@svc/core/contracts'
export const Trap = defineService('trap', { api: 1, methods: { spring: 'call' } })
const WAYS = {
  hang: () => { for (;;); },
  exit: () => process.exit(9),
  reject: () => void Promise.reject(new Error('trapped')),
  heap: () => { for (const all = []; ; ) all.push(new Array(1000).fill({ of: all.length })) },
  throw: () => void queueMicrotask(() => { throw new Error('trapped') }),
}
export default definePlugin({
  provides: Trap,
  setup(scope) {
    const parameters = { type: 'object', properties: { how: { type: 'string' } } }
    const call = async ({ how }) => (WAYS[how](), { content: [] })
    scope.add(Tools, 'blunder', { description: 'Blunders', category: 'text', effects: [], parameters, call })
    return { spring: async how => (await null, WAYS[how](), 'survived') }
  },
})
`
const attacker = (setup: string) => `import { definePlugin, defineService, Host, systemContext } from '@svc/core'
import { Tools } from '@svc/core/contracts'
const Trap = defineService('trap', { api: 1, methods: { spring: 'call' } })
export default definePlugin({
  requires: { trap: Trap },
  setup(scope, { trap }) {
    const own = systemContext(scope.signal)
    const parameters = { type: 'object', properties: { how: { type: 'string' } } }
    const call = async ({ how }) => {
      if (how) void trap.spring(how, own).catch(() => {})
      return { content: [{ type: 'text', text: 'at peace' }] }
    }
    scope.add(Tools, 'attack', { description: 'Attacks', category: 'text', effects: [], parameters, call })
    ${setup}
  },
})
`
const NAME = 'svc-plugin-attacker'
const pluginsOf = (setup = '') => [
  { name: 'svc-plugin-trap', code: TRAP, svc: { contributes: { tools: ['blunder'] } }, isolation: 'in-process' as const },
  { name: NAME, code: attacker(setup), svc: { contributes: { tools: ['attack'] }, permissions: { services: ['trap'] } } },
]

interface Blamed {
  readonly event: string
  readonly plugin: string
  readonly offences: number
  readonly quarantined: boolean
}
const eventsOf = ({ service }: Attacked, event: string): Blamed[] =>
  service
    .output()
    .split('\n')
    .filter(line => line.startsWith(`{"event":"${event}"`))
    .map(line => JSON.parse(line) as Blamed)

describeIsolated('an isolated plugin that ends or blocks the worker by what it sends', function () {
  this.timeout(180_000)
  let attacked: Attacked
  let client: Client
  before(async () => {
    attacked = await startAttacked({ plugins: pluginsOf(), config: { server: { hang_timeout_ms: 2_000 } }, curated: ['metrics'] })
    client = createClient(attacked.service.url)
  })
  after(async () => {
    client?.close()
    await attacked?.[Symbol.asyncDispose]()
  })
  const tool = async (name: string, args: object = {}) =>
    (
      await client
        .post('/api/v1/chat', { message: `/tool ${name} ${JSON.stringify(args)}` })
        .catch(error => ({ text: String(error) }))
    ).text
  const isBack = () =>
    until(
      () => tool('attack'),
      text => text.includes('at peace')
    )
  const exits = () => eventsOf(attacked, 'worker_exited').length

  it('is not blamed for what the worker does by itself', async () => {
    for (const how of ['hang']) {
      await isBack()
      const before = exits()
      await tool('blunder', { how })
      await until(
        async () => exits(),
        count => count > before
      )
    }
    expect(eventsOf(attacked, 'worker_blamed')).to.deep.equal([])
  })

  it('is blamed for each worker that ends or hangs while it handles a frame of the plugin, and is quarantined after the third', async () => {
    for (const [at, how] of ['reject', 'hang', 'heap'].entries()) {
      await isBack()
      await tool('attack', { how })
      const blamed = await until(
        async () => eventsOf(attacked, 'worker_blamed'),
        all => all.length > at
      )
      expect(blamed.at(-1)).to.include({ plugin: NAME, offences: at + 1, quarantined: at === 2 })
    }
    const health = await until(
      () => client.get('/health').catch(() => undefined),
      answer => answer?.status === 200
    )
    expect(health!.text).to.match(/"status":\s*"degraded"/)
    expect(await tool('attack')).to.not.contain('at peace')
    const list = await runSvc(['plugins', 'list', NAME, '--json'], { home: attacked.service.home, cwd: attacked.folder })
    expect((JSON.parse(list.out) as { plugins: { health: string }[] }).plugins[0]?.health, list.err).to.equal('quarantined')
    expect((await client.post('/api/v1/chat', { message: 'hello' })).text).to.contain('You said: hello')
  })

  it('comes back with a reload', async () => {
    const reload = await runSvc(['reload'], { home: attacked.service.home, cwd: attacked.folder })
    expect(reload.code, reload.err).to.equal(0)
    await isBack()
  })
})

describeIsolated('a restart loop that one isolated plugin causes', function () {
  this.timeout(180_000)

  it('ends in the quarantine of the plugin, and the server serves on', async () => {
    const setup = "scope.tap(Host.hooks.ready, () => void setTimeout(() => trap.spring('exit', own).catch(() => {}), 700))"
    await using attacked = await startAttacked({ plugins: pluginsOf(setup) })
    const { child, url } = attacked.service
    const ended = once(child, 'exit').then(() => 'ended')
    const quarantined = until(
      async () => eventsOf(attacked, 'worker_blamed'),
      all => all.some(item => item.quarantined)
    )
    expect(await Promise.race([ended, quarantined.then(() => 'quarantined')])).to.equal('quarantined')
    const client = createClient(url)
    const turn = await until(
      () => client.post('/api/v1/chat', { message: 'hello' }).catch(() => undefined),
      answer => answer?.status === 200
    )
    expect(turn!.text).to.contain('You said: hello')
    expect((await client.get('/health')).text).to.match(/"plugins":\s*"degraded"/)
    client.close()
    expect(attacked.service.output()).to.not.contain('CRASH_LOOP')
  })
})
