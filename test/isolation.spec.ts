import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { configOf, type PluginEntry, planHost, type RunningHost, startHost } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { failureOf, testContext } from '@svc/testing'
import { expect } from 'chai'
import { describeInSandbox } from '../cli/src/isolate-with.ts'
import { hostOptions } from '../cli/src/host-options.ts'
import { linkHost } from '../plugins/admin/plugin-manager/src/set/build-set.ts'
import { describeWith } from './support/needs.ts'

const CODE = `import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { word } from 'word'
import { readFileSync } from 'node:fs'
export default definePlugin({
  setup({ add }) {
    add(Tools, 'greet', {
      description: 'Greets.', category: 'text', effects: [], parameters: { type: 'object' },
      call: async ({ path, later }) => ({ content: [{ type: 'text', text: await answer(path, later) }] }),
    })
  },
})
async function answer(path, later) {
  if (later) return (await import('./later.js')).default
  return path ? readFileSync(path, 'utf8') : word + ' from ' + process.pid
}`
const LATER = `import { svcError } from '@svc/core'
export default svcError('LATER', 'imported later').code`
const COMMON_JS = `exports.word = typeof require('@svc/core').definePlugin === 'function' ? 'hello' : 'alone'`

describeWith('bubblewrap', 'plugins of a configuration in processes of their own', () => {
  let home: string
  let set: string
  const former = process.env.SVC_HOME

  async function writePackage(folder: string, name: string, code: string, more: object = {}) {
    await mkdir(folder, { recursive: true })
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({ name, version: '1.0.0', type: 'module', main: 'index.js', ...more })
    )
    await writeFile(join(folder, 'index.js'), code)
  }
  const svc = (more: object = {}) => ({ svc: { api: 1, kind: 'tool', contributes: { tools: ['greet'] }, ...more } })

  before(async () => {
    home = await realpath(await mkdtemp(join(tmpdir(), 'svc-set-')))
    process.env.SVC_HOME = home
    for (const file of ['key', 'svc-plugins.lock']) await writeFile(join(home, file), 'the secret of the home')
    await mkdir(join(home, 'plugins', 'sets', 'a0'), { recursive: true })
    await writeFile(join(home, 'plugins', 'sets', 'a0', 'x'), 'of another set')
    set = join(home, 'plugins', 'sets', 'a1')
    await writePackage(join(set, 'node_modules', 'svc-plugin-greet'), 'svc-plugin-greet', CODE, svc())
    await writeFile(join(set, 'node_modules', 'svc-plugin-greet', 'later.js'), LATER)
    await writePackage(join(set, 'node_modules', 'word'), 'word', COMMON_JS, { type: 'commonjs' })
    await linkHost(set)
    await mkdir(join(set, 'node_modules', '@svc'))
    await symlink('../../host/core', join(set, 'node_modules', '@svc', 'core'))
  })
  after(async () => {
    if (former === undefined) delete process.env.SVC_HOME
    else process.env.SVC_HOME = former
    await rm(home, { recursive: true })
  })

  const POLICY = ['@svc/plugin-sandbox-process', '@svc/plugin-isolation']
  const start = (entry: PluginEntry) => startHost(hostOptions(configOf({ plugins: [...POLICY, entry as never] }), home))
  const later = async (host: RunningHost) => {
    const { content } = await host.slot(Tools).get('greet')!.call({ later: true }, testContext())
    return content[0]?.type === 'text' && content[0].text
  }
  const entry = (): PluginEntry => ({
    use: 'svc-plugin-greet',
    from: pathToFileURL(`${set}/`).href,
    isolation: 'process',
  })

  it('run from a set in the home, of which they see their own code and nothing else', async () => {
    await using host = await start(entry())
    const { content } = await host.slot(Tools).get('greet')!.call({}, testContext())
    expect(content[0])
      .to.have.property('text')
      .that.matches(/^hello from \d+$/)
    expect(await later(host)).to.equal('LATER')
    for (const file of [join(home, 'key'), join(home, 'svc-plugins.lock'), join(home, 'plugins', 'sets', 'a0', 'x')]) {
      const error = await failureOf(host.slot(Tools).get('greet')!.call({ path: file }, testContext()))
      expect(error.code, file).to.match(/ERR_ACCESS_DENIED|ENOENT/)
    }
    const report = host.report().plugins.find(plugin => plugin.name === 'svc-plugin-greet')
    expect(report).to.include({ isolation: 'process', hold: 'sandbox', state: 'running' })
  })

  it('run unchanged behind the weak rail: CommonJS that asks for the core, and a module that is imported later', async () => {
    const weak = configOf({
      plugins: ['@svc/plugin-isolation', { ...entry(), declares: { requires: {}, optional: {} } } as never],
      isolation: { without_sandbox: 'run-with-open-network-and-unlimited-memory' },
    })
    await using host = await startHost(hostOptions(weak, home))
    expect(host.report().plugins.find(plugin => plugin.name === 'svc-plugin-greet')).to.include({ hold: 'permissions' })
    expect(await later(host)).to.equal('LATER')
  })

  it('run from a folder that a link leads to', async () => {
    const link = join(home, 'link')
    await symlink(join(set, 'node_modules', 'svc-plugin-greet'), link)
    await using host = await start({ use: pathToFileURL(`${link}/`).href, isolation: 'process' })
    expect(host.slot(Tools).has('greet')).to.equal(true)
  })

  it('run nothing at the start where it is known what they declare', async () => {
    const module = pathToFileURL(join(set, 'node_modules', 'svc-plugin-greet', 'index.js')).href
    const folder = join(set, 'node_modules', 'svc-plugin-greet')
    const declares = await describeInSandbox({ name: 'svc-plugin-greet', module, confinement: { folder, permissions: {} } }, {})
    expect(declares).to.deep.equal({ requires: {}, optional: {} })
    const copy = join(set, 'node_modules', 'svc-plugin-late')
    await cp(folder, copy, { recursive: true })
    await writePackage(copy, 'svc-plugin-late', 'throw new Error("it was run")', svc())
    const late = { ...entry(), use: 'svc-plugin-late' }
    const planned = (pluginEntry: PluginEntry) =>
      planHost(hostOptions(configOf({ plugins: [...POLICY, pluginEntry as never] }), home))
    expect((await planned({ ...late, declares })).problems).to.deep.equal([])
    expect((await planned(late)).problems.map(problem => problem.code)).to.deep.equal(['PLUGIN_IMPORT_FAILED'])
  })

  it('are refused in words where they can only run in the process of the host', async () => {
    const copy = join(set, 'node_modules', 'svc-plugin-mounts')
    await writePackage(copy, 'svc-plugin-mounts', CODE, svc({ contributes: { mounts: ['x'] } }))
    const message = (await failureOf(start({ ...entry(), use: 'svc-plugin-mounts' }))).message
    expect(message).to.include('svc-plugin-mounts: cannot run in its own process: it adds mounts')
  })
})
