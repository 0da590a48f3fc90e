import { mkdir, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { Header } from 'tar'
import { failing, failure, openSetWorkspace, type SetWorkspace, plugin, CODE, stateOf } from './support/workspace.ts'
import { planChange } from '@svc/plugin-manager/set'
import { writeFiles } from '../../../../../test/support/registry.ts'

interface Entry {
  readonly path: string
  readonly type?: 'File' | 'SymbolicLink' | 'Link' | 'CharacterDevice'
  readonly target?: string
  readonly text?: string
  /** What its header says, where that is not so. */
  readonly size?: number
}

/** An archive with exactly these entries, whatever their paths. */
function archive(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, type = 'File', target, text = '', size = Buffer.byteLength(text) }) => {
    const body = Buffer.alloc(Math.ceil(Buffer.byteLength(text) / 512) * 512)
    body.write(text)
    const header = new Header({
      path,
      type,
      mode: 0o644,
      size,
      mtime: new Date(0),
      ...(target ? { linkpath: target } : {}),
    })
    header.encode()
    return [header.block!, body]
  })
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]))
}

const PACKAGE: Entry = { path: 'package/package.json', text: JSON.stringify(plugin('svc-plugin-bad')) }

describe('a package that shall be installed', () => {
  let workspace: SetWorkspace
  let at = 0
  before(async () => {
    workspace = await openSetWorkspace()
  })
  after(() => workspace[Symbol.asyncDispose]())

  const plan = async (spec: string) => {
    await using change = await planChange(workspace.home, { install: [{ spec }] })
    return change.candidates
  }
  async function refused(bytes: Uint8Array) {
    const file = join(workspace.folder, `bad-${at++}.tgz`)
    await writeFile(file, bytes)
    const error = await failing(plan(file))
    expect((await stateOf(workspace)).files).to.deep.equal([])
    return `${error.code}: ${error.message}`
  }

  const HOSTILE: readonly [what: string, entry: Entry, says: RegExp][] = [
    ['a path that climbs', { path: 'package/../../../evil.js', text: 'x' }, /a path with \. or \.\./],
    ['an absolute path', { path: '/tmp/svc-evil.js', text: 'x' }, /an absolute path/],
    ['a path with a backslash', { path: 'package\\..\\evil.js', text: 'x' }, /a backslash/],
    ['a symbolic link', { path: 'package/link', type: 'SymbolicLink', target: '/etc/passwd' }, /a link/],
    ['a hard link', { path: 'package/link', type: 'Link', target: 'package/package.json' }, /a link/],
    ['a device', { path: 'package/null', type: 'CharacterDevice' }, /CharacterDevice/],
    ['files in two folders', { path: 'other/index.js', text: 'x' }, /more than one folder/],
    ['a file twice', PACKAGE, /a file twice/],
  ]
  for (const [what, entry, says] of HOSTILE)
    it(`is refused for ${what}, and nothing is unpacked`, async () => {
      expect(await refused(archive([PACKAGE, entry])))
        .to.match(/^PLUGIN_TARBALL_UNSAFE/)
        .and.match(says)
    })

  it('is refused if its tarball is invalid, truncated, compressed twice, or too large', async () => {
    const whole = archive([PACKAGE, { path: 'package/index.js', text: 'x'.repeat(5000) }])
    const bomb = archive([PACKAGE, { path: 'package/zeros', size: 2 ** 31 }])
    expect(await refused(bomb)).to.contain('contains more than')
    for (const bytes of [Buffer.from('no archive'), whole.subarray(0, whole.length / 2), gzipSync(whole)])
      expect(await refused(bytes)).to.match(/^PLUGIN_TARBALL_UNSAFE/)
  })

  it('is refused where it is no plugin', async () => {
    const packed = (pkg: object | string) =>
      archive([{ path: 'package/package.json', text: typeof pkg === 'string' ? pkg : JSON.stringify(pkg) }])
    const { svc: _svc, ...noPlugin } = plugin('svc-plugin-bad')
    expect(await refused(packed(noPlugin))).to.match(/^PLUGIN_NOT_A_PLUGIN.*"svc"/)
    expect(await refused(packed('{'))).to.match(/^PLUGIN_NOT_A_PLUGIN.*not valid JSON/)
    expect(await refused(archive([{ path: 'package/index.js', text: 'x' }]))).to.match(/^PLUGIN_NOT_A_PLUGIN.*no package\.json/)
    expect(await refused(packed({ ...plugin('../../evil') }))).to.match(/^PLUGIN_NOT_A_PLUGIN.*name/)
    expect(await refused(packed({ ...plugin('svc-plugin-bad', '../1') }))).to.match(/^PLUGIN_NOT_A_PLUGIN.*version/)
    expect(await refused(packed(plugin('svc-plugin-bad', '1.0.0', { svc: { api: 1 } })))).to.match(/^MANIFEST_INVALID/)
    expect(await refused(packed(plugin('svc-plugin-bad', '1.0.0', { svc: { api: 99, kind: 'tool' } })))).to.match(
      /^MANIFEST_NEWER/
    )
  })

  it('is refused for a name that only what comes with svc has', async () => {
    for (const name of ['@svc/plugin-http', '@svc/anything', 'svc'])
      expect(await refused(archive([{ path: 'package/package.json', text: JSON.stringify(plugin(name)) }]))).to.match(
        /^PLUGIN_NAME_OURS/
      )
  })

  it('is refused where what was written names none', async () => {
    const specs = [
      './nothing-here',
      'https://example.com/x.tgz',
      'git+ssh://example.com/x',
      'npm:other@1',
      '--registry=evil',
      'UPPER',
      'a@$(x)',
      '.hidden/..',
      '',
    ]
    for (const spec of specs) expect(`${spec} ${await failure(plan(spec))}`).to.equal(`${spec} PLUGIN_SPEC_INVALID`)
    const empty = join(workspace.folder, 'empty')
    await mkdir(empty)
    expect(await failure(plan(empty))).to.equal('PLUGIN_NOT_A_PLUGIN')
  })

  it('comes from a folder without the links in it, and shows what it asks for before anything runs', async () => {
    const folder = join(workspace.folder, 'weather')
    const permissions = { network: ['api.example.com'], env: ['WEATHER_KEY'] }
    const pkg = plugin('svc-plugin-weather', '1.2.3', {
      description: 'Weather',
      scripts: { postinstall: 'exit 1' },
      svc: { api: 1, kind: 'tool', permissions },
    })
    await writeFiles(folder, { 'package.json': JSON.stringify(pkg), ...CODE })
    await symlink('/etc/passwd', join(folder, 'passwd'))
    const [candidate] = await plan(folder)
    expect(candidate).to.deep.include({
      name: 'svc-plugin-weather',
      version: '1.2.3',
      description: 'Weather',
      permissions,
      installScripts: ['postinstall'],
      dependencies: 0,
      packages: [],
      same: false,
    })
    expect(candidate!.permissionChange.added).to.deep.equal(['network api.example.com', 'env WEATHER_KEY'])
    expect(candidate).to.not.have.property('from')
    expect(candidate!.origin).to.deep.equal({ kind: 'folder', spec: folder })
  })

  it('shows that npm would build it where it has a binding.gyp: that is an install script without a name', async () => {
    const gyp = { ...CODE, 'binding.gyp': '{}' }
    const scriptsOf = async (pkg: object) =>
      (await plan(await workspace.tarball(plugin('svc-plugin-native', '1.0.0', pkg), gyp)))[0]!.installScripts
    expect(await scriptsOf({})).to.deep.equal(['binding.gyp'])
    expect(await scriptsOf({ scripts: { install: 'exit 1' } })).to.deep.equal(['install'])
  })

  it('reports a missing npm, and one that takes too long', async () => {
    const folder = join(workspace.folder, 'weather')
    const options = { npm: join(workspace.folder, 'no-npm') }
    expect(await failure(planChange(workspace.home, { install: [{ spec: folder }] }, options))).to.equal('NPM_MISSING')
    expect(await failure(planChange(workspace.home, { install: [{ spec: folder }] }, { limitMs: 1 }))).to.equal(
      'NPM_FAILED timeout'
    )
    const file = join(workspace.folder, 'cut.tgz')
    await writeFile(file, archive([PACKAGE]))
    await truncate(file, 30)
    expect(await failure(plan(file))).to.equal('PLUGIN_TARBALL_UNSAFE')
  })
})
