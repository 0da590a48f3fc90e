import { definePlugin, defineService, type PluginEntry, startHost, type CallContext } from '@svc/core'
import { expect } from 'chai'
import { entry, folder, Greeter, greeter, packageFiles, problemOf, ctx, word, Words } from './support/kernel.ts'

interface Store {
  open(ctx: CallContext): Promise<void>
  shut(ctx: CallContext): Promise<void>
}
const Store = defineService<Store>('store', { api: 1, methods: { open: 'call', shut: 'call' } })
const never = new Promise<never>(() => {})
const HURRY = { host: { setup_timeout_ms: 30, close_timeout_ms: 30, tap_timeout_ms: 30 } }
const logTo = (lines: string[]) => ({ log: { destination: { write: (line: string) => void lines.push(line) } } })

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
      expect(await host.service(Greeter).greet('you', ctx)).to.equal('hello you')
      expect(host.slot(Words).names()).to.deep.equal(['hi'])
      const failed = host.report().plugins.filter(item => item.state === 'failed')
      expect(failed.map(item => [item.error?.code, item.optional])).to.deep.equal([[code, true]])
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
    expect(host.report().plugins.map(plugin => [plugin.name, plugin.error?.code])).to.deep.equal([
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
