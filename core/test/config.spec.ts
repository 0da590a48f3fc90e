import { utimes } from 'node:fs/promises'
import {
  configOf,
  defineConfig,
  definePlugin,
  findConfig,
  type FindOptions,
  formatError,
  type Plugin,
  put,
  schema,
  startHost,
} from '@svc/core'
import { expect } from 'chai'
import { failureOf } from './support/failure.ts'
import { entry, folder, problemOf, problemsOf } from './support/kernel.ts'

type Files = Record<string, string | object>

/** Finds the configuration of a folder with `home` and `project/sub` in it. */
async function find(files: Files, options: Partial<FindOptions> = {}) {
  await using dir = await folder({ 'project/sub/.keep': '', ...files })
  const places = { home: dir.file('home'), cwd: dir.file('project/sub') }
  return await findConfig({ ...places, ...options, ...(options.file ? { file: dir.file(options.file) } : {}) })
}
const any = (section: string, more: Partial<Plugin> = {}) =>
  entry(section, definePlugin({ section, config: schema({ type: 'object' }), setup() {}, ...(more as object) }))
const use = (config: Awaited<ReturnType<typeof find>>) => config.plugins.map(one => one.use)

describe('finding configuration', () => {
  it('takes the nearest file upward', async () => {
    const { value } = await find({ 'svc.config.yaml': 'a: far', 'project/svc.config.yaml': 'a: near' })
    expect(value).to.deep.equal({ a: 'near' })
  })

  it('is content with no file at all', async () => {
    await using dir = await folder()
    const config = await findConfig({ home: dir.file('home'), cwd: dir.path, file: undefined as never })
    expect(config.plugins).to.deep.equal([])
  })

  it("lets --config replace the project's file, not the home's", async () => {
    const files = { 'home/svc.config.yaml': 'h: 1', 'project/svc.config.yaml': 'a: 1', 'other.yaml': 'b: 1' }
    expect((await find(files, { file: 'other.yaml' })).value).to.deep.equal({ h: 1, b: 1 })
  })

  it('says when the file of --config is not there, or of no known form', async () => {
    expect(await failureOf(find({}, { file: 'gone.yaml' }))).to.include({
      code: 'CONFIG_UNREADABLE',
      message: 'this file does not exist',
    })
    const error = await failureOf(find({ 'my.conf': 'a: 1' }, { file: 'my.conf' }))
    expect(error.code).to.equal('CONFIG_UNREADABLE')
    expect(error.message).to.include('.yaml')
  })

  for (const [name, text] of Object.entries({
    'svc.config.ts': 'const port: number = 1\nexport default { server: { port } }',
    'svc.config.mts': 'const port: number = 1\nexport default { server: { port } }',
    'svc.config.js': 'export default { server: { port: 1 } }',
    'svc.config.json': '{ "server": { "port": 1 } }',
    'svc.config.yaml': 'server:\n  port: 1',
  }))
    it(`reads ${name}`, async () => {
      expect((await find({ [`project/${name}`]: text, 'project/package.json': { type: 'module' } })).value).to.deep.equal({
        server: { port: 1 },
      })
    })

  it('takes an empty file for a configuration without keys', async () => {
    for (const text of ['', '\n', '# only a comment\n'])
      expect((await find({ 'svc.config.yaml': 'a: 1', 'project/svc.config.yaml': text })).value).to.deep.equal({})
  })

  const BROKEN: Record<string, [text: string, where: string, told: string]> = {
    'svc.config.yaml': ['a: 1\nb: [1, 2\nc: 3\n', 'svc.config.yaml:3', 'Flow sequence'],
    'svc.config.json': ['{\n  "a": 1,\n  "a": 2\n}', 'svc.config.json:3', 'unique'],
    'svc.config.ts': ['export default {\n  a: 1,\n  b: = 2\n}', 'svc.config.ts:3', 'Expression expected'],
    'svc.config.mts': ['const a = 1\n\nthrow new Error("no luck")\nexport default {}', 'svc.config.mts:3', 'no luck'],
  }
  for (const [name, [text, where, told]] of Object.entries(BROKEN))
    it(`tells the line of what is broken in ${name}`, async () => {
      const error = await failureOf(find({ [`project/${name}`]: text, 'project/package.json': { type: 'module' } }))
      expect(error).to.include({ code: 'CONFIG_UNREADABLE', where })
      expect(error.message).to.include(told)
      expect(error.mend).to.include('mend the file')
    })

  it('tells the line of an alias that YAML takes a star for', async () => {
    const error = await failureOf(find({ 'project/svc.config.yaml': 'server:\n  allowed_hosts:\n    - *.example.com\n' }))
    expect(error).to.include({ code: 'CONFIG_UNREADABLE', where: 'svc.config.yaml:3' })
    expect(error.message).to.include('quotes')
  })

  it('refuses a file that holds no object', async () => {
    for (const [name, text] of [
      ['svc.config.yaml', '- 1'],
      ['svc.config.json', '5'],
      ['svc.config.mts', 'export const a = 1'],
    ] as const)
      expect(await failureOf(find({ [`project/${name}`]: text }))).to.include({ code: 'CONFIG_UNREADABLE', where: name })
  })

  it('sees what changed in a module since it was read', async () => {
    await using dir = await folder({ 'svc.config.mts': 'export default { a: 1 }' })
    const read = async () => (await findConfig({ home: dir.file('home'), cwd: dir.path })).value.a
    expect(await read()).to.equal(1)
    const file = await dir.write('svc.config.mts', 'export default { a: 2 }')
    await utimes(file, 1000, 2000)
    expect(await read()).to.equal(2)
  })
})

describe('merging configuration', () => {
  it('weighs defaults, home, project, environment and flags, each more than the one before', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e']
    const layer = (n: number) => Object.fromEntries(keys.slice(n).map(key => [key, n]))
    const { value, where } = await find(
      { 'home/svc.config.json': { s: layer(1) }, 'project/svc.config.json': { s: layer(2) } },
      { defaults: { s: layer(0) }, env: { SVC_S__D: '3', SVC_S__E: '3' }, flags: { s: layer(4) } }
    )
    expect(value).to.deep.equal({ s: { a: 0, b: 1, c: 2, d: 3, e: 4 } })
    const places = ['defaults', 'svc.config.json:3', 'svc.config.json:3', 'environment SVC_S__D', 'flags']
    expect(keys.map(key => where(['s', key]))).to.deep.equal(places)
  })

  it('merges trees and replaces lists', async () => {
    const { value } = await find({
      'home/svc.config.yaml': 't: { a: 1, list: [1, 2] }',
      'project/svc.config.yaml': 't: { b: 2, list: [3] }',
    })
    expect(value).to.deep.equal({ t: { a: 1, b: 2, list: [3] } })
  })

  it('merges lists of plugins by name, and leaves out what is disabled', async () => {
    const files = {
      'home/svc.config.yaml': 'plugins: [mine, { use: sometimes, optional: true, enabled: false }]',
      'project/svc.config.yaml': 'plugins: [{ use: b, enabled: false }, { use: c, optional: true }, sometimes]',
    }
    const config = await find(files, { defaults: { plugins: ['a', 'b', 'c'] } })
    expect(use(config)).to.deep.equal(['a', 'c', 'mine', 'sometimes'])
    expect(config.plugins.map(one => one.optional)).to.deep.equal([undefined, true, undefined, true])
  })

  it('keeps two nameless plugins of the program apart', () => {
    const plugin = () => ({ use: definePlugin({ setup() {} }) })
    expect(configOf({ plugins: [plugin(), plugin()] }).plugins).to.have.length(2)
  })

  it('refuses what is no list of plugins, with its line', async () => {
    for (const [text, where, code] of [
      ['plugins: http', ':1', 'CONFIG_UNREADABLE'],
      ['plugins:\n  - 5', ':2', 'CONFIG_UNREADABLE'],
      ['plugins:\n  - a\n  - { use: b, optinal: true }', ':3', 'CONFIG_UNKNOWN_KEY'],
    ] as const)
      expect(await failureOf(find({ 'project/svc.config.yaml': text }))).to.include({ code, where: `svc.config.yaml${where}` })
  })

  it('takes a key __proto__ as a key like others', async () => {
    const hostile = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'
    const config = await find(
      { 'home/svc.config.json': hostile, 'project/svc.config.json': hostile },
      { flags: JSON.parse(hostile) }
    )
    put(config.value, ['__proto__', 'polluted'], 2)
    put({}, ['__proto__', 'polluted'], 3)
    expect(({} as { polluted?: number }).polluted).to.equal(undefined)
    expect((config.value as { polluted?: number }).polluted).to.equal(undefined)
    const problems = await problemsOf({ config })
    expect(problems.map(one => one.message)).to.have.members(['__proto__ is no known key', 'constructor is no known key'])
  })
})

describe('configuration from the environment', () => {
  const env = {
    SVC_SERVER__PORT: '9000',
    SVC_SERVER__HOST: '0.0.0.0',
    SVC_SERVER__LIST: '["a"]',
    SVC_HOME: '/h',
    SVC_API_KEY: 'k',
    PATH: '/bin',
    svc_server__x: '1',
  }

  it('takes SVC_A__B only, as JSON where it parses, else as text', async () => {
    expect((await find({}, { env })).value).to.deep.equal({ server: { port: 9000, host: '0.0.0.0', list: ['a'] } })
  })

  it('names the variable of a key that is unknown or wrong', async () => {
    const config = await find(
      {},
      { env: { SVC_SEVER__PORT: '1', SVC_SERVER__PROT: '2', SVC_SERVER__PORT: 'x', SVC_SERVER__TLS: '{"kee":1}' } }
    )
    const server = definePlugin({
      section: 'server',
      config: schema({
        additionalProperties: false,
        properties: { port: { type: 'integer' }, tls: { additionalProperties: false, properties: { key: {} } } },
      }),
      setup() {},
    })
    const problems = await problemsOf({ plugins: [entry('http', server)], config })
    expect(problems.map(one => [one.code, one.where]).sort()).to.deep.equal([
      ['CONFIG_INVALID', 'environment SVC_SERVER__PORT'],
      ['CONFIG_UNKNOWN_KEY', 'environment SVC_SERVER__PROT'],
      ['CONFIG_UNKNOWN_KEY', 'environment SVC_SERVER__TLS'],
      ['CONFIG_UNKNOWN_KEY', 'environment SVC_SEVER__PORT'],
    ])
  })

  it('does not show the value of a secret', async () => {
    const config = await find({}, { env: { SVC_SERVER__AUTH__API_KEY: '12345', SVC_SERVER__TOKEN: 'sk-1' } })
    const json = { properties: { token: { type: 'integer' }, auth: { properties: { api_key: { type: 'string' } } } } }
    const problems = await problemsOf({
      plugins: [entry('http', definePlugin({ section: 'server', config: schema(json), setup() {} }))],
      config,
    })
    expect(problems).to.have.length(2)
    expect(problems.map(formatError).join()).to.not.match(/12345|sk-1/)
  })
})

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
    expect(error).to.include({ code: 'CONFIG_UNKNOWN_KEY', message: 'tools.file is no known key', mend: 'did you mean "files"?' })
    expect(await problemOf({ plugins, config: { tools: 5 } })).to.include({ message: 'tools must be an object' })
  })

  it('may be set to nothing', async () => {
    await using _host = await startHost({ plugins: [any('server')], config: { server: null } })
  })

  it('that nobody owns yet are known and checked, and refused only where they ask for something', async () => {
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
            mend: 'add "@svc/plugin-auth" to "plugins"',
          },
        ],
      },
    ]
    const start = (auth: object) => ({ plugins: [any('server')], reserved, config: { server: { auth } } })
    await using _host = await startHost(start({ enabled: false, header: 'x' }))
    const asked = await problemOf(start({ enabled: true }))
    expect(asked).to.include({ code: 'CONFIG_UNOWNED', where: 'given', mend: 'add "@svc/plugin-auth" to "plugins"' })
    expect(asked.message).to.equal('server.auth.enabled asks for authentication, which no loaded plugin does')
    expect(await problemOf(start({ hedaer: 'x' }))).to.include({ code: 'CONFIG_UNKNOWN_KEY', mend: 'did you mean "header"?' })
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
    expect(host.report().plugins.map(one => [one.name, one.instance])).to.deep.equal([
      ['openai', 'work'],
      ['local', 'local'],
      ['openai', 'openai'],
    ])
  })

  it('are none where no entry asks for one', async () => {
    await using _host = await startHost({ plugins: [kind('local')] })
    expect(seen).to.deep.equal([])
  })

  it('of a type that nobody brings are an error with the known types', async () => {
    const error = await problemOf({
      plugins: [kind('openai'), kind('local')],
      config: { providers: { work: { type: 'opnai' } } },
    })
    expect(error).to.include({
      code: 'CONFIG_INVALID',
      message: 'providers.work is of type "opnai", which no loaded plugin knows',
    })
    expect(error.mend).to.equal('known types: local, openai; or add the plugin that brings "opnai"')
  })

  it('have their faults told under their own path', async () => {
    const error = await problemOf({ plugins: [kind('local')], config: { providers: { mine: { type: 'local', ulr: 'x' } } } })
    expect(error).to.include({ plugin: 'local', message: 'providers.mine.ulr is no known key', mend: 'did you mean "url"?' })
  })

  it('that fail are told apart in the report', async () => {
    const weak = definePlugin({
      instances: 'providers',
      type: 'weak',
      setup: scope => {
        if (scope.instance === 'b') throw new Error('no')
      },
    })
    const providers = { a: { type: 'weak' }, b: { type: 'weak' } }
    await using host = await startHost({ plugins: [entry('weak', weak, { optional: true })], config: { providers } })
    expect(host.report().plugins.map(one => [one.instance, one.state])).to.deep.equal([
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
