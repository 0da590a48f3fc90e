import { definePlugin, findConfig, formatError, schema, startHost } from '@svc/core'
import { expect } from 'chai'
import { entry, folder, problemOf, problemsOf } from './support/kernel.ts'

describe('a bad configuration', () => {
  const server = entry(
    'http',
    definePlugin({
      section: 'server',
      config: schema<{ host: string; port: number; mode: string }>({
        type: 'object',
        additionalProperties: false,
        required: ['host'],
        properties: { host: { type: 'string' }, port: { type: 'integer', maximum: 65_535 }, mode: { enum: ['a', 'b'] } },
      }),
      setup() {},
    })
  )

  it('reports all its problems at once, each with file and line', async () => {
    await using dir = await folder({
      'svc.config.yaml': 'log:\n  level: loud\n\n# comment\nserver:\n  port: "80"\n  mode: c\n  prot: 1\nsever:\n  port: 80\n',
    })
    const config = await findConfig({ home: dir.file('home'), cwd: dir.path })
    const problems = await problemsOf({ plugins: [server], config })
    expect(problems.map(problem => [problem.code, problem.plugin, problem.where, problem.message, problem.hint])).to.deep.equal([
      [
        'CONFIG_INVALID',
        undefined,
        'svc.config.yaml:2',
        'log.level must be one of "debug", "info", "warn", "error", "silent", was text "loud"',
        'Fix the value, or remove the key to use its default',
      ],
      ['CONFIG_UNKNOWN_KEY', undefined, 'svc.config.yaml:9', 'sever is not a known key', 'did you mean "server"?'],
      ['CONFIG_INVALID', 'http', 'svc.config.yaml:5', 'server.host is required', 'Set server.host'],
      ['CONFIG_UNKNOWN_KEY', 'http', 'svc.config.yaml:8', 'server.prot is not a known key', 'did you mean "port"?'],
      [
        'CONFIG_INVALID',
        'http',
        'svc.config.yaml:6',
        'server.port must be integer, was text "80"',
        'Fix the value, or remove the key to use its default',
      ],
      [
        'CONFIG_INVALID',
        'http',
        'svc.config.yaml:7',
        'server.mode must be one of "a", "b", was text "c"',
        'Fix the value, or remove the key to use its default',
      ],
    ])
  })

  it('lists what is known where no name is near', async () => {
    const error = await problemOf({ plugins: [server], config: { server: { host: 'x', certificate: 1 } } })
    expect(error).to.include({ code: 'CONFIG_UNKNOWN_KEY', where: 'given', hint: 'Known keys here: host, mode, port' })
  })

  it('refuses keys for a plugin that has none', async () => {
    const bare = entry('bare', definePlugin({ section: 'bare', setup() {} }))
    const error = await problemOf({ plugins: [bare], config: { bare: { colour: 1 } } })
    expect(error).to.include({ code: 'CONFIG_UNKNOWN_KEY', plugin: 'bare', message: 'bare.colour is not a known key' })
  })

  it('never shows a secret', async () => {
    const keys = {
      api_key: { type: 'integer' },
      api_keys: { type: 'array', items: { type: 'integer' } },
      'x-api-key': { enum: [1] },
    }
    const secretive = entry('s', definePlugin({ section: 's', config: schema({ properties: keys }), setup() {} }))
    const config = { s: { api_key: 'sk-geheim', api_keys: ['sk-geheim'], 'x-api-key': 'sk-geheim' } }
    const problems = await problemsOf({ plugins: [secretive], config })
    expect(problems).to.have.length(3)
    expect(JSON.stringify(problems) + problems.map(formatError).join()).to.not.include('geheim')
  })

  it('is frozen once it is good, and has its defaults', async () => {
    let seen: { deep: { list: number[] } } | undefined
    const properties = { deep: { type: 'object', default: {}, properties: { list: { default: [1] } } } }
    const plugin = definePlugin({
      section: 's',
      config: schema<{ deep: { list: number[] } }>({ type: 'object', properties }),
      setup: scope => void (seen = scope.config),
    })
    await using _host = await startHost({ plugins: [entry('s', plugin)] })
    expect(seen).to.deep.equal({ deep: { list: [1] } })
    expect(() => seen?.deep.list.push(2)).to.throw(TypeError)
  })
})
