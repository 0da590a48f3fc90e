import { rename, symlink } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type ConfigTree, definePlugin, importFrom, planHost, readManifest, startHost } from '@svc/core'
import { expect } from 'chai'
import { entry, folder, Greeter, greeter, packageFiles, problemOf, ctx, Words } from './support/kernel.ts'

const SVC = { api: 1, kind: 'word', contributes: { words: ['*'] }, permissions: { env: ['WORD_KEY'] } }
/** A plugin with its own copy of the types: it knows the tokens by name and api only. */
const says = (text: string) => `
const Words = { what: 'slot', local: false, name: 'words', api: 1, methods: { say: 'call' }, changed: { id: 'words.changed', kind: 'series' } }
export default { requires: {}, optional: {}, setup: scope => void scope.add(Words, 'word', { text: ${JSON.stringify(text)}, say: async () => ${JSON.stringify(text)} }) }`

async function textOf(use: string | URL, from?: string[]) {
  await using host = await startHost({ plugins: [use], ...(from ? { from } : {}) })
  return host.slot(Words).get('word')?.text
}

describe('a plugin is found', () => {
  it('by its name in the first place that has it', async () => {
    await using found = await folder()
    await using two = await folder(packageFiles('svc-plugin-word', SVC, says('two')))
    await using three = await folder(packageFiles('svc-plugin-word', SVC, says('three')))
    expect(await textOf('svc-plugin-word', [found.url, two.url, three.url])).to.equal('two')
    expect(await textOf('svc-plugin-word', [three.url, two.url])).to.equal('three')
  })

  it('by its scoped name', async () => {
    await using dir = await folder(packageFiles('@acme/svc-word', SVC, says('scoped')))
    expect(await textOf('@acme/svc-word', [dir.url])).to.equal('scoped')
  })

  it('next to the configuration that names it, before other places', async () => {
    await using far = await folder(packageFiles('svc-plugin-word', SVC, says('far')))
    await using near = await folder(packageFiles('svc-plugin-word', SVC, says('near')))
    await using host = await startHost({
      config: { plugins: [{ use: 'svc-plugin-word', from: near.file('svc.config.yaml') }] },
      from: [far.url],
    })
    expect(host.slot(Words).get('word')?.text).to.equal('near')
  })

  it('by the URL of its folder and by a path, also with odd characters in it', async () => {
    await using dir = await folder({
      'odd #1 %41/package.json': { name: 'odd', type: 'module', svc: SVC },
      'odd #1 %41/index.js': says('odd'),
    })
    expect(await textOf(pathToFileURL(dir.file('odd #1 %41')))).to.equal('odd')
    expect(await textOf(dir.file('odd #1 %41'), [dir.url])).to.equal('odd')
    expect(await textOf('./odd #1 %41', [dir.url])).to.equal('odd')
  })

  it('as a single file, which is held to no manifest', async () => {
    await using dir = await folder({ 'my-word.mjs': says('file') })
    await using host = await startHost({ plugins: ['./my-word.mjs'], from: [dir.url] })
    expect(host.slot(Words).get('word')?.text).to.equal('file')
    expect(host.report().plugins[0]).to.include({ name: 'my-word', state: 'running' })
  })

  it('as a plain object that leaves out what it has no need of: definePlugin is for its types', async () => {
    const plain = says('plain').replace('requires: {}, optional: {}, ', '')
    expect(plain).to.contain('export default { setup')
    await using dir = await folder(packageFiles('svc-plugin-word', SVC, plain))
    expect(await textOf('svc-plugin-word', [dir.url])).to.equal('plain')
  })

  it('in a folder where nothing is installed: it gets this very copy of the core', async () => {
    const text = `import { definePlugin, Host } from '@svc/core'
import { Tools } from '@svc/core/contracts'
export default definePlugin({ requires: { host: Host, tools: Tools }, setup(scope) { scope.tap(Host.hooks.ready, () => undefined) } })`
    await using dir = await folder({ 'bare.mts': text })
    await using host = await startHost({ plugins: ['./bare.mts'], from: [dir.url] })
    expect(host.report().plugins[0]).to.include({ name: 'bare', state: 'running' })
  })

  it('under the end of its path only, where others see it', async () => {
    await using dir = await folder()
    const use = dir.file('secret-place/gone.mjs')
    await using host = await startHost({ plugins: [{ use, optional: true }], from: [dir.url] })
    expect(host.report().plugins[0]).to.include({ name: 'gone.mjs', state: 'failed' })
  })

  it('through its "exports", with all conditions', async () => {
    const exports = { '.': { 'svc-source': './source.js', default: './dist.js' } }
    const files = packageFiles('svc-plugin-word', SVC, 'throw 1', { exports, main: undefined })
    await using dir = await folder({
      ...files,
      'node_modules/svc-plugin-word/source.js': says('source'),
      'node_modules/svc-plugin-word/dist.js': says('dist'),
    })
    expect(await textOf('svc-plugin-word', [dir.url])).to.equal('source')
    expect(await textOf(pathToFileURL(dir.file('node_modules/svc-plugin-word')))).to.equal('source')
  })

  it('through a link, as npm lays it for a folder', async () => {
    await using dir = await folder(packageFiles('real', SVC, says('linked')))
    await rename(dir.file('node_modules/real'), dir.file('elsewhere'))
    await symlink(dir.file('elsewhere'), dir.file('node_modules/real'))
    expect(await textOf('real', [dir.url])).to.equal('linked')
  })

  it('without running anything of it before its manifest is read', async () => {
    await using dir = await folder(packageFiles('svc-plugin-new', { api: 9, kind: 'x' }, 'globalThis.__ran = true'))
    await problemOf({ plugins: ['svc-plugin-new'], from: [dir.url] })
    expect(globalThis).to.not.have.property('__ran')
  })
})

describe('a plugin that is installed elsewhere', () => {
  it('knows services, slots and hooks by name, with its own copy of the types', async () => {
    const code = `
const Greeter = { what: 'service', name: 'greeter', api: 1, methods: { greet: 'call' }, hooks: { before: { id: 'greeter.before', kind: 'waterfall' } } }
export default {
  requires: { greeter: Greeter }, optional: {},
  async setup(scope, { greeter }) {
    scope.tap(Greeter.hooks.before, name => name + '!')
    globalThis.__greeted = await greeter.greet('copy', { signal: scope.signal, requestId: 'r', principal: { id: 'x', scopes: [] } })
  },
}`
    await using dir = await folder(packageFiles('svc-plugin-copy', { api: 1, kind: 'x' }, code))
    await using host = await startHost({ plugins: ['svc-plugin-copy', greeter()], from: [dir.url] })
    expect((globalThis as { __greeted?: string }).__greeted).to.equal('hello copy!')
    expect(await host.service(Greeter).greet('you', ctx)).to.equal('hello you!')
    delete (globalThis as { __greeted?: string }).__greeted
  })

  it('gets errors of its own copy taken for what they are', async () => {
    const code = `
class SvcError extends Error { name = 'SvcError'; code = 'WEATHER_KEY_MISSING'; details = {}; hint = 'set WEATHER_KEY' }
export default { requires: {}, optional: {}, setup() { throw new SvcError('no key') } }`
    await using dir = await folder(packageFiles('svc-plugin-copy', { api: 1, kind: 'x' }, code))
    const error = await problemOf({ plugins: ['svc-plugin-copy'], from: [dir.url] })
    expect(error).to.include({ code: 'SETUP_FAILED', plugin: 'svc-plugin-copy', hint: 'set WEATHER_KEY' })
  })
})

describe('importFrom', () => {
  it('imports a name as a module at that place would, each place its own', async () => {
    await using a = await folder(packageFiles('dep', {}, 'export default "a"'))
    await using b = await folder(packageFiles('dep', {}, 'export default "b"'))
    const [first, two] = await Promise.all([importFrom('dep', a.url), importFrom('dep', b.url)])
    expect([first, two].map(module => (module as { default: string }).default)).to.deep.equal(['a', 'b'])
  })
})

describe('planHost', () => {
  it('finds, checks and orders, but sets nothing up', async () => {
    let ran = false
    const guest = entry('guest', definePlugin({ requires: { g: Greeter }, setup: () => void (ran = true) }))
    const plan = await planHost({ plugins: [guest, greeter()] })
    expect(plan.plannedPlugins.map(plannedPlugin => plannedPlugin.name)).to.deep.equal(['greeter', 'guest'])
    expect(plan.problems).to.deep.equal([])
    expect(ran).to.equal(false)
  })

  it('keeps the order of the list where no service asks for another', async () => {
    const plain = (name: string) => entry(name, definePlugin({ setup() {} }))
    const guest = entry('guest', definePlugin({ optional: { g: Greeter }, setup() {} }))
    const plan = await planHost({ plugins: [plain('c'), guest, plain('a'), greeter(), plain('b')] })
    expect(plan.plannedPlugins.map(plannedPlugin => plannedPlugin.name)).to.deep.equal(['c', 'greeter', 'guest', 'a', 'b'])
  })

  const MANY = { ...SVC, instances: { section: 'shops', type: 'corner' } }
  const planOf = async (code: string, shops: object) => {
    await using dir = await folder(packageFiles('svc-plugin-shop', MANY, code))
    return await planHost({ config: { plugins: ['svc-plugin-shop'], shops } as ConfigTree, from: [dir.url] })
  }
  const SHOP = `export default { instances: 'shops', type: 'corner', setup() {} }`

  it('imports nothing of a plugin with instances where no entry is its own', async () => {
    const { problems, loaded, plannedPlugins } = await planOf('throw new Error("imported")', { corner: { enabled: false } })
    expect([problems, loaded.map(item => item.name), plannedPlugins]).to.deep.equal([[], ['svc-plugin-shop'], []])
    const wanted = await planOf('throw new Error("imported")', { mine: { type: 'corner' } })
    expect(wanted.problems.map(problem => problem.code)).to.deep.equal(['PLUGIN_IMPORT_FAILED', 'CONFIG_UNKNOWN_KEY'])
  })

  it('knows the type of its entries all the same', async () => {
    const { problems } = await planOf(SHOP, { mine: { type: 'corne' } })
    expect(problems.map(problem => problem.hint)).to.deep.equal([
      'Use one of the types corner, or add the plugin that provides "corne"',
    ])
  })

  it('refuses a plugin whose code has other instances than its manifest says', async () => {
    const { plannedPlugins } = await planOf(SHOP, { corner: {}, other: { type: 'corner' } })
    expect(plannedPlugins.map(plannedPlugin => plannedPlugin.instance)).to.deep.equal(['corner', 'other'])
    const { problems } = await planOf(SHOP.replace("type: 'corner'", "type: 'super'"), { corner: {} })
    expect(problems[0]).to.include({ code: 'MANIFEST_INVALID', plugin: 'svc-plugin-shop' })
    expect(problems[0]?.message).to.contain('type corner').and.contain('type super')
  })
})

describe('the report of a host', () => {
  it('tells what each plugin is, has added and may do', async () => {
    await using dir = await folder(packageFiles('svc-plugin-word', SVC, says('x')))
    await using host = await startHost({ plugins: ['svc-plugin-word'], from: [dir.url], serverId: 'me', version: '1.0.0' })
    const report = host.report()
    expect(report).to.include({ serverId: 'me', version: '1.0.0', state: 'running' })
    expect(report.plugins[0]).to.deep.include({
      name: 'svc-plugin-word',
      version: '1.2.3',
      kind: 'word',
      state: 'running',
      optional: false,
      added: { words: ['word'] },
      permissions: { env: ['WORD_KEY'] },
    })
    const info = await readManifest(dir.file('node_modules/svc-plugin-word/package.json'))
    expect(info).to.include({ name: 'svc-plugin-word', main: 'main.js', folder: dir.file('node_modules/svc-plugin-word') })
    expect(fileURLToPath(dir.url)).to.equal(`${dir.path}/`)
  })

  it('takes the rest of the path as the last segment of a route, and no other form of it', async () => {
    const read = async (path: string) => {
      const svc = { api: 1, kind: 'routes', contributes: { routes: { one: { method: 'GET', path } } } }
      await using dir = await folder(packageFiles('svc-plugin-paths', svc, ''))
      return await readManifest(dir.file('node_modules/svc-plugin-paths/package.json')).then(
        () => 'taken',
        (error: Error) => error.message
      )
    }
    for (const path of ['/a/*rest', '/*rest', '/a/:id/*rest', '/a/:id', '/']) expect(await read(path), path).to.equal('taken')
    for (const path of ['/a/*', '/a*rest', '/a/*rest/b', '/a/*rest*more', '/a/**rest', '*rest', '/a/:id*rest', '/a/*1'])
      expect(await read(path), path).to.include('must be a path like /notes/:id')
  })

  it('never lets a secret into the log', async () => {
    const lines: string[] = []
    const facts = {
      api_key: 'geheim',
      headers: { authorization: 'geheim', 'x-api-key': 'geheim' },
      deep: { er: { password: 'geheim' } },
    }
    const plugin = definePlugin({ setup: scope => scope.log.info(facts, 'told') })
    await using _host = await startHost({
      plugins: [entry('a', plugin)],
      log: { destination: { write: line => void lines.push(line) } },
    })
    expect(lines).to.have.length(1)
    expect(lines[0]).to.include('"plugin":"a"').and.include('told').and.not.include('geheim')
  })
})
