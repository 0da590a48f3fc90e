import { configOf, definePlugin, formatError, put, schema } from '@svc/core'
import { expect } from 'chai'
import { entry, findIn, problemsOf } from './support/kernel.ts'

const use = (config: Awaited<ReturnType<typeof findIn>>) => config.plugins.map(plugin => plugin.use)

describe('merging configuration', () => {
  it('weighs defaults, home, project, environment and flags, each more than the one before', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e']
    const layer = (n: number) => Object.fromEntries(keys.slice(n).map(key => [key, n]))
    const { value, where } = await findIn(
      { 'home/svc.config.json': { s: layer(1) }, 'project/svc.config.json': { s: layer(2) } },
      { defaults: { s: layer(0) }, env: { SVC_S__D: '3', SVC_S__E: '3' }, flags: { s: layer(4) } }
    )
    expect(value).to.deep.equal({ s: { a: 0, b: 1, c: 2, d: 3, e: 4 } })
    const [first, home, ...others] = keys.map(key => where(['s', key]))
    expect(home).to.match(/^\/.*\/home\/svc\.config\.json:3$/)
    expect([first, ...others]).to.deep.equal(['defaults', '../svc.config.json:3', 'environment SVC_S__D', 'flags'])
  })

  it('merges trees and replaces lists', async () => {
    const { value } = await findIn({
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
    const config = await findIn(files, { defaults: { plugins: ['a', 'b', 'c'] } })
    expect(use(config)).to.deep.equal(['a', 'c', 'mine', 'sometimes'])
    expect(config.plugins.map(plugin => plugin.optional)).to.deep.equal([undefined, true, undefined, true])
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
    ] as const) {
      const { problems } = await findIn({ 'project/svc.config.yaml': text })
      expect(problems).to.have.length(1)
      expect(problems[0]).to.include({ code, where: `../svc.config.yaml${where}` })
    }
  })

  it('takes a key __proto__ as a key like others', async () => {
    const hostile = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'
    const config = await findIn(
      { 'home/svc.config.json': hostile, 'project/svc.config.json': hostile },
      { flags: JSON.parse(hostile) }
    )
    put(config.value, ['__proto__', 'polluted'], 2)
    put({}, ['__proto__', 'polluted'], 3)
    expect(({} as { polluted?: number }).polluted).to.equal(undefined)
    expect((config.value as { polluted?: number }).polluted).to.equal(undefined)
    const problems = await problemsOf({ config })
    expect(problems.map(problem => problem.message)).to.have.members([
      '__proto__ is not a known key',
      'constructor is not a known key',
    ])
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
    expect((await findIn({}, { env })).value).to.deep.equal({ server: { port: 9000, host: '0.0.0.0', list: ['a'] } })
  })

  it('names the variable of a key that is unknown or wrong', async () => {
    const config = await findIn(
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
    expect(problems.map(problem => [problem.code, problem.where])).to.have.deep.members([
      ['CONFIG_INVALID', 'environment SVC_SERVER__PORT'],
      ['CONFIG_UNKNOWN_KEY', 'environment SVC_SERVER__PROT'],
      ['CONFIG_UNKNOWN_KEY', 'environment SVC_SERVER__TLS'],
      ['CONFIG_UNKNOWN_KEY', 'environment SVC_SEVER__PORT'],
    ])
  })

  it('does not show the value of a secret', async () => {
    const config = await findIn({}, { env: { SVC_SERVER__AUTH__API_KEY: '12345', SVC_SERVER__TOKEN: 'sk-1' } })
    const json = { properties: { token: { type: 'integer' }, auth: { properties: { api_key: { type: 'string' } } } } }
    const problems = await problemsOf({
      plugins: [entry('http', definePlugin({ section: 'server', config: schema(json), setup() {} }))],
      config,
    })
    expect(problems).to.have.length(2)
    expect(problems.map(formatError).join()).to.not.match(/12345|sk-1/)
  })
})
