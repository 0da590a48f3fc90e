import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { configOf, type PluginEntry, planHost, startHost } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { failureOf, noBubblewrap, testUse } from '@svc/core/testing'
import { expect } from 'chai'
import { describeInSandbox } from '../cli/src/isolate-with.ts'
import { hostOptions } from '../cli/src/host-options.ts'

const why = noBubblewrap()
const group = why === undefined ? describe : describe.skip
const CORE = fileURLToPath(new URL('../core/', import.meta.url))

const CODE = `import { definePlugin } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { word } from 'word'
import { readFileSync } from 'node:fs'
export default definePlugin({
  setup({ add }) {
    add(Tools, 'greet', {
      description: 'Greets.', category: 'text', effects: [], parameters: { type: 'object' },
      call: async ({ path }) => ({ content: [{ type: 'text', text: path ? readFileSync(path, 'utf8') : word + ' from ' + process.pid }] }),
    })
  },
})`

group(`plugins of a configuration in processes of their own${why === undefined ? '' : ` – LEFT OUT: ${why}`}`, () => {
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
    await writePackage(join(set, 'node_modules', 'word'), 'word', `export const word = 'hello'`)
    await mkdir(join(set, 'node_modules', '@svc'))
    await symlink(CORE, join(set, 'node_modules', '@svc', 'core'))
  })
  after(async () => {
    if (former === undefined) delete process.env.SVC_HOME
    else process.env.SVC_HOME = former
    await rm(home, { recursive: true })
  })

  const POLICY = ['@svc/plugin-sandbox-process', '@svc/plugin-isolation']
  const start = (entry: PluginEntry) => startHost(hostOptions(configOf({ plugins: [...POLICY, entry as never] }), home))
  const entry = (): PluginEntry => ({
    use: 'svc-plugin-greet',
    from: pathToFileURL(`${set}/`).href,
    isolation: 'process',
  })

  it('run from a set in the home, of which they see their own code and nothing else', async () => {
    await using host = await start(entry())
    const { content } = await host.slot(Tools).get('greet')!.call({}, testUse())
    expect(content[0])
      .to.have.property('text')
      .that.matches(/^hello from \d+$/)
    for (const file of [join(home, 'key'), join(home, 'svc-plugins.lock'), join(home, 'plugins', 'sets', 'a0', 'x')]) {
      const error = await failureOf(host.slot(Tools).get('greet')!.call({ path: file }, testUse()))
      expect(error.code, file).to.match(/ERR_ACCESS_DENIED|ENOENT/)
    }
    const report = host.report().plugins.find(one => one.name === 'svc-plugin-greet')
    expect(report).to.include({ isolation: 'process', hold: 'sandbox', state: 'running' })
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
    const declares = await describeInSandbox({ name: 'svc-plugin-greet', module, held: { folder, permissions: {} } }, {}, home)
    expect(declares).to.deep.equal({ requires: {}, optional: {} })
    const copy = join(set, 'node_modules', 'svc-plugin-late')
    await cp(folder, copy, { recursive: true })
    await writePackage(copy, 'svc-plugin-late', 'throw new Error("it was run")', svc())
    const late = { ...entry(), use: 'svc-plugin-late' }
    const planned = (one: PluginEntry) => planHost(hostOptions(configOf({ plugins: [...POLICY, one as never] }), home))
    expect((await planned({ ...late, declares })).problems).to.deep.equal([])
    expect((await planned(late)).problems.map(one => one.code)).to.deep.equal(['PLUGIN_IMPORT_FAILED'])
  })

  it('are refused in words where they can only run in the process of the host', async () => {
    const copy = join(set, 'node_modules', 'svc-plugin-mounts')
    await writePackage(copy, 'svc-plugin-mounts', CODE, svc({ contributes: { mounts: ['x'] } }))
    const message = (await failureOf(start({ ...entry(), use: 'svc-plugin-mounts' }))).message
    expect(message).to.include('svc-plugin-mounts: cannot run in a process of its own: it adds mounts')
  })
})
