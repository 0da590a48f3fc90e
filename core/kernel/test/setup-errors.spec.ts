import { definePlugin, defineService, type PluginEntry, svcError, type CallContext } from '@svc/core'
import { isolate } from '@svc/runtime/isolation'
import { service, testHost } from '@svc/testing'
import { expect } from 'chai'
import { failureOf } from '../../../test/support/failure.ts'
import { entry, folder, problemOf, ctx, word, Words } from './support/kernel.ts'

interface Store {
  open(ctx: CallContext): Promise<void>
  shut(ctx: CallContext): Promise<void>
}
const Store = defineService<Store>('store', { api: 1, methods: { open: 'call', shut: 'call' } })
const never = new Promise<never>(() => {})
const stuck = (): Store => ({ open: () => never, shut: () => never })
const HURRY = { host: { setup_timeout_ms: 30, close_timeout_ms: 30, tap_timeout_ms: 30 } }

describe('a setup that fails', () => {
  it('is reported with its plugin, and keeps the cause', async () => {
    const cause = new Error('no luck')
    const error = await problemOf({ plugins: [entry('a', definePlugin({ setup: () => Promise.reject(cause) }))] })
    expect(error).to.include({ code: 'SETUP_FAILED', plugin: 'a', message: 'its setup failed: no luck', cause })
    expect(error.hint).to.equal('Fix the plugin, or remove it from "plugins" to start without it')
  })

  it('says how to start without it, where the program knows another way than the list of plugins', async () => {
    const broken = entry('a', definePlugin({ setup: () => Promise.reject(new Error('no luck')) }))
    const without = (plugin: string) => `drop ${plugin}`
    expect(await problemOf({ plugins: [broken], without })).to.have.property('hint', 'Fix the plugin, or drop a')
  })

  it('hands on the code and the hint of what went wrong', async () => {
    const cause = svcError('STORE_NEWER', 'the file is newer', { hint: 'update svc' })
    const error = await problemOf({
      plugins: [
        entry(
          'a',
          definePlugin({
            setup: () => {
              throw cause
            },
          })
        ),
      ],
    })
    expect(error).to.include({ code: 'SETUP_FAILED', plugin: 'a', hint: 'update svc' })
    expect(error.details).to.deep.equal({ cause: 'STORE_NEWER' })
  })

  it('is reported when it returns no service, or not all of one', async () => {
    const half = definePlugin({ provides: Store, setup: () => ({ open: async () => {} }) as unknown as Store })
    const error = await problemOf({ plugins: [entry('half', half)] })
    expect(error).to.include({ code: 'SETUP_FAILED', plugin: 'half' })
    expect(error.message).to.equal('its setup failed: it provides "store" without shut')
  })

  it('undoes what was built, in reverse, and what the failing one had built too', async () => {
    const undone: string[] = []
    const builder = (name: string, fails = false) =>
      entry(
        name,
        definePlugin({
          setup(scope) {
            scope.defer(() => undone.push(`${name} 1`))
            scope.use({ [Symbol.asyncDispose]: async () => void undone.push(`${name} 2`) })
            scope.use({ [Symbol.dispose]: () => void undone.push(`${name} 3`) })
            if (fails) throw new Error('no')
          },
        })
      )
    await problemOf({ plugins: [builder('a'), builder('b'), builder('c', true), builder('d')] })
    expect(undone).to.deep.equal(['c 3', 'c 2', 'c 1', 'b 3', 'b 2', 'b 1', 'a 3', 'a 2', 'a 1'])
  })
})

describe('a setup in a process of its own', () => {
  /** What the start says of a plugin whose module has this setup, below a blank line. */
  const problemWith = async (setup: string, setup_timeout_ms = 50_000) => {
    await using dir = await folder({
      'node_modules/lost/package.json': { type: 'module' },
      'node_modules/lost/src/index.js': `\nexport default {\n${setup} }`,
    })
    const plugin = await isolate({ name: 'lost', module: new URL('node_modules/lost/src/index.js', dir.url).href })
    return await problemOf({ plugins: [entry('lost', plugin)], config: { host: { setup_timeout_ms } } })
  }

  it('is reported by the line of the plugin where it throws, as one in this process, or by none', async () => {
    const error = await problemWith("setup() { throw new Error('no database today') }")
    expect(error).to.include({ code: 'SETUP_FAILED', plugin: 'lost', where: 'index.js:3' })
    expect(error.message).to.equal('its setup failed: no database today')
    const named = "Object.assign(new Error('no key'), { name: 'SvcError', code: 'NO_KEY' })"
    const worded = await problemWith(`setup() { throw ${named} }`)
    expect(worded).to.include({ code: 'SETUP_FAILED', message: 'its setup failed: no key', where: undefined })
    const placeless = await problemWith("setup() { return Promise.reject('no database today') }")
    expect(placeless).to.include({ code: 'SETUP_FAILED', message: 'its setup failed: no database today', where: undefined })
  })

  it('tells nothing of this process where it waits for something of its own', async () => {
    const { code, details } = await problemWith('setup: () => new Promise(() => {})', 6_000)
    expect(code).to.equal('SETUP_TIMEOUT')
    expect(details).to.deep.equal({ ms: 6_000, waited: 'its own work in its own process' })
  })
})

describe('a setup that never ends', () => {
  const waits = (setup: (given: { store: Store }) => unknown): PluginEntry =>
    entry('waiter', definePlugin({ requires: { store: Store }, setup: async (_scope, given) => void (await setup(given)) }))
  const store = entry('memory', definePlugin({ provides: Store, setup: stuck }))

  it('is reported with what it waited for', async () => {
    const error = await problemOf({ plugins: [waits(({ store }) => store.open(ctx)), store], config: HURRY })
    expect(error).to.include({ code: 'SETUP_TIMEOUT', plugin: 'waiter' })
    expect(error.message).to.equal('its setup did not end within 30 ms; it was waiting for the result of store.open')
    expect(error.details).to.deep.equal({ ms: 30, waited: 'the result of store.open' })
    expect(error.hint).to.include('host.setup_timeout_ms')
  })

  it('is reported with what it waited for in a strict host, too', async () => {
    const start = testHost([waits(({ store }) => store.open(ctx))], { give: [service(Store, stuck())], config: HURRY })
    expect((await failureOf(start)).message).to.include('waiting for the result of store.open')
  })

  it('tells the last step where it waits for something of its own', async () => {
    const plugin = definePlugin({
      setup: scope => {
        scope.add(Words, 'hi', word('hi'))
        return never
      },
    })
    const error = await problemOf({ plugins: [entry('a', plugin)], config: HURRY })
    expect(error).to.include({ code: 'SETUP_TIMEOUT', plugin: 'a' })
    expect(error.message).to.include('its own work (last step: added words/hi; open: ')
  })

  it('adds nothing any more when it wakes up late', async () => {
    const { promise: gate, resolve: wake } = Promise.withResolvers<void>()
    const late = Promise.withResolvers<unknown>()
    const plugin = definePlugin({
      setup: async scope => {
        await gate
        try {
          scope.add(Words, 'late', word('late'))
        } catch (error) {
          late.resolve(error)
          throw error
        }
      },
    })
    await problemOf({ plugins: [entry('sleeper', plugin)], config: HURRY })
    wake()
    expect(await late.promise).to.include({
      code: 'SCOPE_CLOSED',
      plugin: 'sleeper',
      hint: 'Stop the work of the plugin when scope.signal aborts',
    })
  })
})
