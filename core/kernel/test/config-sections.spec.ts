import { defineConfig, definePlugin, type Plugin, schema, type Scope, startHost } from '@svc/core'
import { expect } from 'chai'
import { entry, Greeter, greeter, problemOf, word, Words } from './support/kernel.ts'

const any = (section: string, more: Partial<Plugin> = {}) =>
  entry(section, definePlugin({ section, config: schema({ type: 'object' }), setup() {}, ...(more as object) }))

describe('sections', () => {
  it('nest: the longest owner wins', async () => {
    const seen: Record<string, unknown> = {}
    const owner = (section: string) =>
      entry(
        section,
        definePlugin({ section, config: schema({ type: 'object' }), setup: scope => void (seen[section] = scope.config) })
      )
    const config = { server: { port: 1, auth: { enabled: true, oidc: { issuer: 'x' } } } }
    await using _host = await startHost({ plugins: [owner('server'), owner('server.auth.oidc'), owner('server.auth')], config })
    expect(seen).to.deep.equal({ server: { port: 1 }, 'server.auth': { enabled: true }, 'server.auth.oidc': { issuer: 'x' } })
  })

  it('may have an owner deep down and none above', async () => {
    const plugins = [any('tools.files')]
    await using _host = await startHost({ plugins, config: { tools: { files: { roots: [] } } } })
    const error = await problemOf({ plugins, config: { tools: { file: {} } } })
    expect(error).to.include({
      code: 'CONFIG_UNKNOWN_KEY',
      message: 'tools.file is not a known key',
      hint: 'did you mean "files"?',
    })
    const unowned = await problemOf({ plugins, config: { tools: { pgquery: {} } } })
    expect(unowned.hint).to.equal(
      'If a plugin owns tools.pgquery, install that plugin first (svc plugins install <plugin>), or add it to "plugins"; otherwise remove the key. Known keys here: files'
    )
    expect(await problemOf({ plugins, config: { tools: 5 } })).to.include({ message: 'tools must be an object' })
  })

  it('knows what others own in it when a key is mistyped', async () => {
    const config = schema({ type: 'object', additionalProperties: false, properties: { port: { type: 'integer' } } })
    const plugins = [any('server', { config }), any('server.workers')]
    const error = await problemOf({ plugins, config: { server: { wokers: 2 } } })
    expect(error).to.include({
      code: 'CONFIG_UNKNOWN_KEY',
      message: 'server.wokers is not a known key',
      hint: 'did you mean "workers"?',
    })
    expect((await problemOf({ plugins, config: { server: { x: 2 } } })).hint).to.equal('Known keys here: port, workers')
  })

  it('may be set to nothing', async () => {
    await using _host = await startHost({ plugins: [any('server')], config: { server: null } })
  })

  it('that have no owner yet are known and checked, and refused only where they ask for something', async () => {
    const reserved = [
      {
        section: 'server.auth',
        json: {
          type: 'object',
          additionalProperties: false,
          properties: { enabled: { type: 'boolean' }, header: { type: 'string' } },
        },
        asks: [
          {
            key: 'enabled',
            when: (value: unknown) => value === true,
            what: 'authentication',
            hint: 'add "@svc/plugin-auth" to "plugins"',
          },
        ],
      },
    ]
    const start = (auth: object) => ({ plugins: [any('server')], reserved, config: { server: { auth } } })
    await using _host = await startHost(start({ enabled: false, header: 'x' }))
    const asked = await problemOf(start({ enabled: true }))
    expect(asked).to.include({ code: 'CONFIG_UNOWNED', where: 'given', hint: 'add "@svc/plugin-auth" to "plugins"' })
    expect(asked.message).to.equal('server.auth.enabled requests authentication, but no loaded plugin provides it')
    expect(await problemOf(start({ hedaer: 'x' }))).to.include({ code: 'CONFIG_UNKNOWN_KEY', hint: 'did you mean "header"?' })
    await using _owned = await startHost({ ...start({ enabled: true }), plugins: [any('server'), any('server.auth')] })
  })
})

describe('instances', () => {
  const seen: unknown[] = []
  const kind = (type: string) =>
    entry(
      type,
      definePlugin({
        instances: 'providers',
        type,
        config: schema<{ url?: string }>({
          type: 'object',
          additionalProperties: false,
          properties: { url: { type: 'string' } },
        }),
        setup: scope => void seen.push([type, scope.instance, scope.config]),
      })
    )
  beforeEach(() => void seen.splice(0))

  it('are set up once per entry of the type, in the order of the file', async () => {
    const providers = {
      work: { type: 'openai', url: 'b' },
      local: {},
      openai: { url: 'a' },
      off: { type: 'openai', enabled: false },
    }
    await using host = await startHost({ plugins: [kind('local'), kind('openai')], config: { providers } })
    expect(seen).to.deep.equal([
      ['openai', 'work', { url: 'b' }],
      ['local', 'local', {}],
      ['openai', 'openai', { url: 'a' }],
    ])
    expect(host.report().plugins.map(plugin => [plugin.name, plugin.instance])).to.deep.equal([
      ['openai', 'work'],
      ['local', 'local'],
      ['openai', 'openai'],
    ])
  })

  it('stand in their slot in the order of the file, whenever they are set up, before what no entry asked for', async () => {
    const scopes = new Map<string, Scope>()
    const add = (scope: Scope) => {
      scopes.set(scope.instance ?? scope.name, scope)
      return scope.add(Words, scope.instance ?? scope.name, word(scope.name))
    }
    const removals: (() => void)[] = []
    const needing = definePlugin({
      instances: 'providers',
      type: 'needing',
      requires: { greeter: Greeter },
      setup: scope => void removals.push(add(scope)),
    })
    const plain = definePlugin({ instances: 'providers', type: 'plain', setup: scope => void add(scope) })
    const plugins = [
      entry('own', definePlugin({ setup: scope => void add(scope) })),
      entry('plain', plain),
      entry('needing', needing),
      greeter(),
    ]
    const providers = { first: { type: 'needing' }, second: { type: 'plain' }, third: { type: 'needing' } }
    await using host = await startHost({ plugins, config: { providers } })
    const names = () => host.slot(Words).names()
    expect(names()).to.deep.equal(['first', 'second', 'third', 'own'])
    removals[0]!()
    expect(names()).to.deep.equal(['second', 'third', 'own'])
    // as one in a process of its own that comes back
    add(scopes.get('first')!)
    expect(names()).to.deep.equal(['first', 'second', 'third', 'own'])
  })

  it('are none where no entry asks for one', async () => {
    await using _host = await startHost({ plugins: [kind('local')] })
    expect(seen).to.deep.equal([])
  })

  it('of a type that no plugin brings are an error with the known types', async () => {
    const error = await problemOf({
      plugins: [kind('openai'), kind('local')],
      config: { providers: { work: { type: 'opnai' } } },
    })
    expect(error).to.include({
      code: 'CONFIG_INVALID',
      message: 'providers.work has the type "opnai", which no loaded plugin provides',
    })
    expect(error.hint).to.equal('Use one of the types local, openai, or add the plugin that provides "opnai"')
  })

  it('suggest the key that says whose an entry is, and the one that switches it off', async () => {
    const plugins = [kind('local')]
    const typ = await problemOf({ plugins, config: { providers: { mine: { typ: 'local', url: 'x' } } } })
    expect(typ).to.include({
      code: 'CONFIG_UNKNOWN_KEY',
      message: 'providers.mine.typ is not a known key',
      hint: 'did you mean "type"?',
    })
    const off = await problemOf({ plugins, config: { providers: { local: { enabeld: false } } } })
    expect(off).to.include({ message: 'providers.local.enabeld is not a known key', hint: 'did you mean "enabled"?' })
  })

  it('have their problems reported under their own path', async () => {
    const error = await problemOf({ plugins: [kind('local')], config: { providers: { mine: { type: 'local', ulr: 'x' } } } })
    expect(error).to.include({ plugin: 'local', message: 'providers.mine.ulr is not a known key', hint: 'did you mean "url"?' })
  })

  it('that fail are distinct in the report', async () => {
    const weak = definePlugin({
      instances: 'providers',
      type: 'weak',
      setup: scope => {
        if (scope.instance === 'b') throw new Error('no')
      },
    })
    const providers = { a: { type: 'weak' }, b: { type: 'weak' } }
    await using host = await startHost({ plugins: [entry('weak', weak, { optional: true })], config: { providers } })
    expect(host.report().plugins.map(plugin => [plugin.instance, plugin.state])).to.deep.equal([
      ['a', 'running'],
      ['b', 'failed'],
    ])
  })
})

describe('defineConfig', () => {
  it('returns what it is given', () => {
    const config = { log: { level: 'debug' as const } }
    expect(defineConfig(config)).to.equal(config)
  })
})
