import { once } from 'node:events'
import { createServer } from 'node:net'
import {
  definePlugin,
  defineService,
  type Plugin,
  type PluginEntry,
  type RunningHost,
  startHost,
  svcError,
  type Use,
} from '@svc/core'
import { service, testHost } from '@svc/core/testing'
import { expect } from 'chai'
import { failureOf } from './support/failure.ts'
import { entry, folder, Greeter, greeter, packageFiles, problemOf, use, word, Words } from './support/kernel.ts'

interface Store {
  open(use: Use): Promise<void>
  shut(use: Use): Promise<void>
}
const Store = defineService<Store>('store', { api: 1, methods: { open: 'call', shut: 'call' } })
const never = new Promise<never>(() => {})
const stuck = (): Store => ({ open: () => never, shut: () => never })
const HURRY = { host: { setup_timeout_ms: 30, close_timeout_ms: 30, tap_timeout_ms: 30 } }
const logTo = (lines: string[]) => ({ log: { destination: { write: (line: string) => void lines.push(line) } } })

describe('a setup that fails', () => {
  it('is told with its plugin, and keeps the cause', async () => {
    const cause = new Error('no luck')
    const error = await problemOf({ plugins: [entry('a', definePlugin({ setup: () => Promise.reject(cause) }))] })
    expect(error).to.include({ code: 'SETUP_FAILED', plugin: 'a', message: 'its setup failed: no luck', cause })
    expect(error.mend).to.equal('the log has the stack; disable the plugin to start without it')
  })

  it('hands on the code and the mend of what went wrong', async () => {
    const cause = svcError('STORE_NEWER', 'the file is newer', { mend: 'update svc' })
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
    expect(error).to.include({ code: 'SETUP_FAILED', plugin: 'a', mend: 'update svc' })
    expect(error.details).to.deep.equal({ cause: 'STORE_NEWER' })
  })

  it('is told when it returns no service, or not all of one', async () => {
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

describe('a setup that never ends', () => {
  const waits = (setup: (given: { store: Store }) => unknown): PluginEntry =>
    entry('waiter', definePlugin({ requires: { store: Store }, setup: async (_scope, given) => void (await setup(given)) }))
  const store = entry('memory', definePlugin({ provides: Store, setup: stuck }))

  it('is told with what it waited for', async () => {
    const error = await problemOf({ plugins: [waits(({ store }) => store.open(use)), store], config: HURRY })
    expect(error).to.include({ code: 'SETUP_TIMEOUT', plugin: 'waiter' })
    expect(error.message).to.equal('its setup did not end within 30 ms; it was waiting for the answer of store.open')
    expect(error.details).to.deep.equal({ ms: 30, waited: 'the answer of store.open' })
    expect(error.mend).to.include('host.setup_timeout_ms')
  })

  it('is told with what it waited for in a strict host, too', async () => {
    const start = testHost([waits(({ store }) => store.open(use))], { give: [service(Store, stuck())], config: HURRY })
    expect((await failureOf(start)).message).to.include('waiting for the answer of store.open')
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
    expect(error.message).to.include('something of its own (last step: added words/hi; open: ')
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
      mend: 'stop the work when scope.signal aborts',
    })
  })
})

describe('a plugin that is optional and fails', () => {
  const CASES: Record<string, { plugin: () => Partial<PluginEntry> & Pick<PluginEntry, 'use'>; code: string; config?: object }> =
    {
      'is unknown': { plugin: () => ({ use: 'svc-plugin-nowhere' }), code: 'PLUGIN_UNKNOWN', config: { nowhere: { key: 1 } } },
      'has a broken manifest': { plugin: () => ({ use: './bad' }), code: 'MANIFEST_INVALID' },
      'cannot be imported': { plugin: () => ({ use: 'svc-plugin-throws' }), code: 'PLUGIN_IMPORT_FAILED' },
      'has a bad configuration': {
        plugin: () => ({ use: definePlugin({ section: 's', setup() {} }) }),
        code: 'CONFIG_UNKNOWN_KEY',
        config: { s: { a: 1 } },
      },
      'misses a service': {
        plugin: () => ({ use: definePlugin({ requires: { s: Store }, setup() {} }) }),
        code: 'SERVICE_MISSING',
      },
      'provides what is provided': {
        plugin: () => ({ use: definePlugin({ provides: Greeter, setup: () => ({ greet: async () => '' }) }) }),
        code: 'SERVICE_TAKEN',
      },
      'throws in its setup': {
        plugin: () => ({
          use: definePlugin({
            setup: () => {
              throw new Error('no')
            },
          }),
        }),
        code: 'SETUP_FAILED',
      },
      'never ends its setup': { plugin: () => ({ use: definePlugin({ setup: () => never }) }), code: 'SETUP_TIMEOUT' },
      'adds a name that is taken': {
        plugin: () => ({ use: definePlugin({ setup: scope => void scope.add(Words, 'hi', word('b')) }) }),
        code: 'NAME_TAKEN',
      },
    }
  const hi = entry('hi', definePlugin({ setup: scope => void scope.add(Words, 'hi', word('a')) }))

  for (const [fault, { plugin, code, config = {} }] of Object.entries(CASES))
    it(`leaves the host running when it ${fault}, and the report says so`, async () => {
      await using dir = await folder({
        'bad/package.json': '{',
        ...packageFiles('svc-plugin-throws', { api: 1, kind: 'x' }, 'throw 1'),
      })
      const weak = { name: 'weak', ...plugin(), optional: true }
      const lines: string[] = []
      await using host = await startHost({
        plugins: [greeter(), hi, weak],
        from: [dir.url],
        config: { ...HURRY, ...config },
        ...logTo(lines),
      })
      expect(await host.service(Greeter).greet('you', use)).to.equal('hello you')
      expect(host.slot(Words).names()).to.deep.equal(['hi'])
      const failed = host.report().plugins.filter(one => one.state === 'failed')
      expect(failed.map(one => [one.error?.code, one.optional])).to.deep.equal([[code, true]])
      expect(lines.filter(line => line.includes(code))).to.have.length(1)
    })

  it('takes those along that need it and are optional too; who is not fails the start', async () => {
    const weak = entry(
      'weak',
      definePlugin({
        provides: Store,
        setup: (): Store => {
          throw new Error('no')
        },
      }),
      { optional: true }
    )
    const needy = (more: object) => entry('needy', definePlugin({ requires: { store: Store }, setup() {} }), more)
    await using host = await startHost({ plugins: [weak, needy({ optional: true })] })
    expect(host.report().plugins.map(one => [one.name, one.error?.code])).to.deep.equal([
      ['weak', 'SETUP_FAILED'],
      ['needy', 'SERVICE_MISSING'],
    ])
    expect(await problemOf({ plugins: [weak, needy({})] })).to.include({ code: 'SERVICE_MISSING', plugin: 'needy' })
  })

  it('is undefined for those who would use it', async () => {
    let seen: unknown = 'nothing yet'
    const weak = entry(
      'weak',
      definePlugin({
        provides: Store,
        setup: (): Store => {
          throw new Error('no')
        },
      }),
      { optional: true }
    )
    const user = entry('user', definePlugin({ optional: { store: Store }, setup: (_scope, { store }) => void (seen = store) }))
    await using _host = await startHost({ plugins: [user, weak] })
    expect(seen).to.equal(undefined)
  })
})

describe('a close', () => {
  const closes = (undo: () => unknown, name = 'bad') => entry(name, definePlugin({ setup: scope => scope.defer(undo) }))

  it('goes on when an undo throws, and tells it with its plugin', async () => {
    const undone: string[] = []
    const good = (name: string) => closes(() => undone.push(name), name)
    const host = await startHost({
      plugins: [
        good('a'),
        closes(() => {
          throw new Error('stuck')
        }),
        good('b'),
      ],
    })
    const error = await failureOf(host.close())
    expect(error).to.include({ code: 'CLOSE_FAILED', plugin: 'bad', message: 'an undo failed: stuck' })
    expect(error.mend).to.be.a('string')
    expect(undone).to.deep.equal(['b', 'a'])
    expect(host.report().state).to.equal('closed')
  })

  it('does not wait for an undo that hangs', async () => {
    const undone: string[] = []
    const host = await startHost({ plugins: [closes(() => undone.push('a'), 'a'), closes(() => never)], config: HURRY })
    const error = await failureOf(host.close())
    expect(error).to.include({ code: 'CLOSE_FAILED', plugin: 'bad', message: 'an undo failed: it did not end within 30 ms' })
    expect(undone).to.deep.equal(['a'])
  })

  it('tells every undo that failed', async () => {
    const bad = (name: string) =>
      closes(() => {
        throw new Error(name)
      }, name)
    const host = await startHost({ plugins: [bad('a'), bad('b')] })
    const { problems } = (await failureOf(host.close())) as unknown as { problems: { plugin: string; mend: string }[] }
    expect(problems.map(one => one.plugin)).to.deep.equal(['b', 'a'])
    expect(problems[0]?.mend).to.include('host.close_timeout_ms')
  })

  it('may be asked for twice: it undoes once, and both wait for the same end', async () => {
    let undone = 0
    const host = await startHost({ plugins: [closes(() => undone++)] })
    await Promise.all([host.close(), host.close()])
    await host.close()
    expect(undone).to.equal(1)
  })

  it('aborts the signal of each plugin before its undos', async () => {
    const seen: boolean[] = []
    const plugin = definePlugin({ setup: scope => scope.defer(() => seen.push(scope.signal.aborted)) })
    await (await startHost({ plugins: [entry('a', plugin)] })).close()
    expect(seen).to.deep.equal([true])
  })

  it('leaves nothing: what was added, tapped and counted before is as much as after', async () => {
    const counts = (host: RunningHost) => [host.slot(Words).size, host.report().plugins.length]
    const adds = definePlugin({
      setup(scope) {
        scope.add(Words, 'hi', word('hi'))
        scope.tap(Greeter.hooks.greeted, () => {})
        const remove = scope.add(Words, 'early', word('early'))
        remove()
        remove()
      },
    })
    const host = await startHost({ plugins: [entry('adds', adds), greeter()] })
    expect(host.report().plugins[0]?.added).to.deep.equal({ words: ['hi'] })
    expect(counts(host)).to.deep.equal([1, 2])
    await host.close()
    expect(counts(host)).to.deep.equal([0, 0])
  })
})

describe('two hosts in one process', () => {
  it('know nothing of each other', async () => {
    const says = (text: string) =>
      entry(
        'says',
        definePlugin({
          setup(scope) {
            scope.add(Words, 'hi', word(text))
            scope.tap(Greeter.hooks.before, name => `${name} ${text}`)
          },
        })
      )
    const a = await startHost({ plugins: [greeter(), says('a')] })
    await using b = await startHost({ plugins: [greeter(), says('b')] })
    expect(a.slot(Words).get('hi')?.text).to.equal('a')
    expect(await a.service(Greeter).greet('x', use)).to.equal('hello x a')
    await a.close()
    expect(b.slot(Words).get('hi')?.text).to.equal('b')
    expect(await b.service(Greeter).greet('x', use)).to.equal('hello x b')
    expect(a.report().serverId).to.not.equal(b.report().serverId)
  })
})

describe('a plugin that leaves something open', () => {
  const leave = async (plugin: Plugin, strict = true) => failureOf((await testHost([entry('messy', plugin)], { strict })).close())

  it('is named by testHost, with what and where', async () => {
    let timer: NodeJS.Timeout | undefined
    const error = await leave(definePlugin({ setup: () => void (timer = setInterval(() => {}, 1000)) }))
    clearInterval(timer)
    expect(error).to.include({ code: 'LEFTOVERS', plugin: 'messy' })
    expect(error.message).to.match(/^messy left open: a timer \(setup-errors\.spec\.ts:\d+\)$/)
    expect(error.mend).to.include('scope.defer')
  })

  it('is named for a server it opened in a tap, strict or not', async () => {
    for (const strict of [true, false]) {
      const server = createServer()
      const { Host } = await import('@svc/core')
      const error = await leave(
        definePlugin({
          setup: scope =>
            void scope.tap(Host.hooks.ready, async () => {
              await once(server.listen(0, '127.0.0.1'), 'listening')
              return undefined
            }),
        }),
        strict
      )
      server.close()
      expect(error).to.include({ code: 'LEFTOVERS', plugin: 'messy' })
      expect(error.message).to.include('a server')
    }
  })

  it('is not blamed for what the test opened, nor for what does not keep the process alive', async () => {
    const host = await testHost([entry('clean', definePlugin({ setup: () => void setInterval(() => {}, 1000).unref() }))])
    const mine = setInterval(() => {}, 1000)
    await host.close()
    clearInterval(mine)
  })

  it('is told apart from another host that still runs', async () => {
    let timer: NodeJS.Timeout | undefined
    await using _other = await testHost([
      entry(
        'other',
        definePlugin({
          setup: scope => {
            const mine = setInterval(() => {}, 1000)
            scope.defer(() => clearInterval(mine))
          },
        })
      ),
    ])
    const error = await leave(definePlugin({ setup: () => void (timer = setTimeout(() => {}, 60_000)) }))
    clearTimeout(timer)
    expect(error.plugin).to.equal('messy')
  })
})
