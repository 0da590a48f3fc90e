import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packSet, planChange, planRestore } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { CODE, failing, failure, openSetWorkspace, plugin, type SetWorkspace } from './support/workspace.ts'

const NAME = 'svc-plugin-one'

/** Each test has a home of its own, with a plugin in its second version. */
describe('the former version of an installed plugin', () => {
  let workspace: SetWorkspace
  beforeEach(async () => {
    workspace = await openSetWorkspace()
    for (const version of ['1.0.0', '2.0.0']) await install(version)
  })
  afterEach(() => workspace[Symbol.asyncDispose]())

  const install = async (version: string, name = NAME) =>
    workspace.change({ install: [{ spec: await workspace.tarball(plugin(name, version), CODE) }] })
  const rollBack = (...names: string[]) => workspace.change({ rollback: names.length > 0 ? names : [NAME] })
  const versions = async () => (await workspace.lock()).plugins.map(({ name, version }) => `${name} ${version}`)
  const formerFolder = () => join(workspace.home, 'plugins', 'former')
  const tarballs = async () => (await readdir(formerFolder())).filter(name => name.endsWith('.tgz'))

  it('takes effect again with its files, its origin and the same hash, and back again', async () => {
    const [second] = (await workspace.lock()).plugins
    await using change = await planChange(workspace.home, { rollback: [NAME] })
    expect(change.candidates[0]).to.include({ name: NAME, from: '2.0.0', version: '1.0.0' })
    await change[Symbol.asyncDispose]()
    await rollBack()
    expect(await versions()).to.deep.equal([`${NAME} 1.0.0`])
    expect(JSON.parse(await workspace.installed(`${NAME}/package.json`))).to.include({ version: '1.0.0' })
    const [first] = (await workspace.lock()).plugins
    expect(first!.origin.spec).to.include('1.0.0').and.not.include(formerFolder())
    await rollBack()
    expect((await workspace.lock()).plugins).to.deep.equal([second])
  })

  it('is kept while other plugins change, and forgotten with its plugin', async () => {
    for (const version of ['1.0.0', '1.1.0', '1.2.0', '1.3.0']) await install(version, 'svc-plugin-two')
    expect(await tarballs()).to.have.length(2)
    await rollBack(NAME, 'svc-plugin-two')
    expect(await versions()).to.deep.equal([`${NAME} 1.0.0`, 'svc-plugin-two 1.2.0'])
    await workspace.change({ uninstall: [NAME] })
    await install('3.0.0')
    expect(await failure(rollBack())).to.equal('PLUGIN_FORMER_MISSING')
  })

  it('is that before the last change which took effect', async () => {
    await using change = await planChange(workspace.home, {
      install: [{ spec: await workspace.tarball(plugin(NAME, '3.0.0'), CODE) }],
    })
    const { plugins } = await change.build()
    await change.commit(plugins, async () => false)
    await change[Symbol.asyncDispose]()
    expect(await versions()).to.deep.equal([`${NAME} 2.0.0`])
    await rollBack()
    expect(await versions()).to.deep.equal([`${NAME} 1.0.0`])
  })

  it('is kept by a machine that takes over a bundle', async () => {
    const file = join(workspace.folder, 'bundle.tgz')
    await install('3.0.0')
    await packSet(workspace.home, file, {})
    await rollBack()
    {
      await using change = await planRestore(workspace.home, file)
      const { plugins } = await change.build()
      await change.commit(plugins)
    }
    await rollBack()
    expect(await versions()).to.deep.equal([`${NAME} 2.0.0`])
  })

  it('is refused if its tarball was changed, is gone, or its list is no list', async () => {
    const before = await workspace.lock()
    const [name] = await tarballs()
    const file = join(formerFolder(), name!)
    const other = await workspace.tarball(plugin(NAME, '1.0.0', { description: 'another one' }), CODE)
    await writeFile(file, await readFile(other))
    const changed = await failing(rollBack())
    expect([changed.code, changed.hint]).to.deep.equal([
      'PLUGIN_CHANGED',
      `Install the version by its name: svc plugins install ${NAME}@<version>`,
    ])
    await rm(file)
    expect(await failure(rollBack())).to.equal('PLUGIN_FORMER_MISSING')
    for (const text of ['{', '[{"name": "../../x"}]', '{"a": 1}']) {
      await writeFile(join(formerFolder(), 'index.json'), text)
      expect(await failure(rollBack())).to.equal('PLUGIN_FORMER_MISSING')
    }
    expect(await failure(rollBack('svc-plugin-none'))).to.equal('PLUGIN_NOT_INSTALLED')
    expect(await workspace.lock()).to.deep.equal(before)
  })
})
