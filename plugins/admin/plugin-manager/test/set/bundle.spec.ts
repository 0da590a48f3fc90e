import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packSet, planRestore, readLock, setFolder, verifySet } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { create, extract } from 'tar'
import { writeFiles } from '../../../../../test/support/registry.ts'
import { filesBelow } from '../../src/set/verify.ts'
import { CODE, failing, failure, openSetWorkspace, type SetWorkspace, plugin, stateOf } from './support/workspace.ts'

const PLUGIN = plugin('svc-plugin-one', '1.0.0', {
  dependencies: { helper: '1.0.0' },
  bundleDependencies: ['helper'],
  bin: { one: 'index.js' },
})
const FILES = {
  'index.js': '#!/usr/bin/env node\nexport default { setup() {} }\n',
  'node_modules/helper/package.json': JSON.stringify({ name: 'helper', version: '1.0.0', main: 'index.js', bin: 'index.js' }),
  'node_modules/helper/index.js': 'export default 1\n',
}

describe('a bundle', () => {
  let workspace: SetWorkspace
  let bundle: string
  before(async () => {
    workspace = await openSetWorkspace()
    bundle = join(workspace.folder, 'plugins.tgz')
    await workspace.change({ install: [{ spec: await workspace.tarball(PLUGIN, FILES) }] })
    await packSet(workspace.home, bundle)
  })
  after(() => workspace[Symbol.asyncDispose]())

  async function restore(home: string, file = bundle) {
    await using change = await planRestore(home, file)
    const { plugins } = await change.build()
    return await change.commit(plugins)
  }
  const contents = async (home: string) => {
    const set = setFolder(home, await readLock(home))!
    return filesBelow(set, path => path === 'host').map(file => [
      file.path,
      file.isLink ? 'link' : readFileSync(join(set, file.path), 'base64'),
    ])
  }
  /** The bundle, unpacked, changed, and packed again. */
  async function changed(change: (folder: string) => void) {
    const folder = await mkdtemp(join(workspace.folder, 'changed-'))
    await extract({ file: bundle, cwd: folder })
    change(folder)
    const names = [
      'bundle.json',
      ...filesBelow(folder)
        .map(file => file.path)
        .filter(path => path !== 'bundle.json'),
    ]
    await create({ file: `${folder}.tgz`, cwd: folder, gzip: true, noDirRecurse: true }, names)
    return `${folder}.tgz`
  }
  async function refused(file: string) {
    const before = await stateOf(workspace)
    const error = await failing(planRestore(workspace.home, file))
    expect(error.code).to.equal('BUNDLE_INVALID')
    expect(await stateOf(workspace)).to.deep.equal(before)
    return error.message
  }

  it('has equal bytes each time, and restores the set byte for byte on a machine without npm and network', async () => {
    const again = join(workspace.folder, 'again.tgz')
    await packSet(workspace.home, again)
    expect((await readFile(again)).equals(await readFile(bundle))).to.equal(true)
    const [home, path] = [join(workspace.folder, 'other'), process.env.PATH]
    process.env.PATH = ''
    try {
      const lock = await restore(home)
      const { set: _set, dependencies, ...rest } = lock
      const { set: _other, dependencies: theirs, ...their } = await workspace.lock()
      expect([rest, dependencies.files]).to.deep.equal([their, theirs.files])
      expect(await verifySet(home, lock)).to.deep.equal([])
      expect(await contents(home)).to.deep.equal(await contents(workspace.home))
      await packSet(home, again)
      expect((await readFile(again)).equals(await readFile(bundle))).to.equal(true)
    } finally {
      process.env.PATH = path
    }
  })

  it('shows what it would put in force, and takes the place of all that is installed', async () => {
    const other = join(workspace.folder, 'third')
    await using change = await planRestore(other, bundle)
    expect(
      change.candidates.map(candidate => [candidate.name, candidate.version, candidate.dependencies, candidate.same])
    ).to.deep.equal([['svc-plugin-one', '1.0.0', 1, false]])
    await change.build()
    await change[Symbol.asyncDispose]()
    expect((await stateOf({ home: other })).files).to.deep.equal([])
  })

  it('is refused where it is cut, no archive, or not there', async () => {
    const bytes = await readFile(bundle)
    const cut = join(workspace.folder, 'cut.tgz')
    for (const part of [
      bytes.subarray(0, bytes.length / 2),
      bytes.subarray(0, bytes.length - 4),
      Buffer.from('no archive'),
      Buffer.alloc(0),
    ]) {
      await writeFile(cut, part)
      await refused(cut)
    }
    await rm(cut)
    expect(await refused(cut)).to.contain('does not exist')
  })

  it('is refused for a byte, a file or a link more than it names', async () => {
    const own = 'set/node_modules/svc-plugin-one'
    const edits: readonly ((folder: string) => void)[] = [
      folder => writeFileSync(join(folder, own, 'index.js'), FILES['index.js'].replace('setup', 'steal')),
      folder => writeFileSync(join(folder, own, 'more.js'), ''),
      folder => symlinkSync('/etc/passwd', join(folder, own, 'passwd')),
      folder => writeFileSync(join(folder, 'outside.js'), ''),
      folder =>
        edit(folder, item => ({
          ...item,
          files: { ...item.files, 'node_modules/svc-plugin-one/index.js': { sha256: '0'.repeat(64) } },
        })),
      folder => edit(folder, ({ plugins: _plugins, ...rest }) => rest),
    ]
    for (const item of edits) await refused(await changed(item))
  })

  it('is refused if it names a link out of the bundle, or files that its lock does not have', async () => {
    const link = await changed(folder => {
      symlinkSync('../../../../../etc/passwd', join(folder, 'set/node_modules/svc-plugin-one/passwd'))
      edit(folder, item => ({
        ...item,
        files: { ...item.files, 'node_modules/svc-plugin-one/passwd': { link: '../../../../../etc/passwd' } },
      }))
    })
    expect(await refused(link)).to.contain('leaves the bundle')
    const lying = await changed(folder =>
      edit(folder, item => ({ ...item, plugins: item.plugins.map(plugin => ({ ...plugin, files: '0'.repeat(64) })) }))
    )
    expect(await refused(lying)).to.contain('svc-plugin-one')
    const climbing = join(workspace.folder, 'climbing.tgz')
    const onWriteEntry = (entry: { path: string }) => void (entry.path = `set/../../${entry.path}`)
    await create({ file: climbing, cwd: workspace.folder, gzip: true, preservePaths: true, onWriteEntry }, ['plugins.tgz'])
    expect(await refused(climbing)).to.contain('..')
  })

  it('is not made of nothing, of a link, or of what was changed', async () => {
    const file = join(workspace.folder, 'never.tgz')
    expect(await failure(packSet(join(workspace.folder, 'nothing'), file))).to.equal('PLUGIN_SET_EMPTY')
    const code = join(setFolder(workspace.home, await workspace.lock())!, 'node_modules/svc-plugin-one/index.js')
    await writeFile(code, 'other')
    expect(await failure(packSet(workspace.home, file))).to.equal('PLUGIN_CHANGED')
    await writeFile(code, FILES['index.js'])
    const linked = join(workspace.folder, 'linked')
    await writeFiles(linked, { ...CODE, 'package.json': JSON.stringify(plugin('svc-plugin-linked')) })
    await workspace.change({ link: [linked] })
    expect(await failure(packSet(workspace.home, file))).to.equal('PLUGIN_LINKED')
  })

  it('is not written where a link leads out of what is installed, which no other machine has; one that leads nowhere within is left as it is', async () => {
    await using other = await openSetWorkspace()
    const links = "fs.symlinkSync('gone.js', 'a-inward'); fs.symlinkSync('../../../out.js', 'b-outward')"
    const linking = plugin('svc-plugin-linking', '1.0.0', { scripts: { postinstall: `node -e "${links}"` } })
    await other.change({ install: [{ spec: await other.tarball(linking, CODE), scripts: true }] })
    const file = join(other.folder, 'plugins.tgz')
    const error = await failing(packSet(other.home, file))
    expect([error.code, error.message]).to.deep.equal([
      'PLUGIN_LEADS_OUT',
      'node_modules/svc-plugin-linking/b-outward is a link that leaves the folder of the installed plugins, so a bundle cannot contain its target',
    ])
    expect(existsSync(file)).to.equal(false)
  })
})

interface Parts {
  readonly plugins: readonly object[]
  readonly files: object
}

function edit(folder: string, change: (bundle: Parts) => object): void {
  const file = join(folder, 'bundle.json')
  writeFileSync(file, JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8')) as Parts)))
}
