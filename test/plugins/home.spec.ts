import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { inWorkspace, type PluginWorkspace, setOf } from '../support/plugin-workspace.ts'
import { sideBySideIn } from '../support/side-by-side.ts'
import { COMMAND, TIDES, tidesFile, tidesFolder } from '../support/tides.ts'
import { itWith } from '../support/needs.ts'

const MOON = { kind: 'service', contributes: {}, permissions: { services: ['moon'] } }
const MOON_TOKEN = "defineService('moon', { api: 1, methods: { phase: 'call' } })"
const MOON_CODE = `import { definePlugin, defineService } from '@svc/core'
export default definePlugin({ provides: ${MOON_TOKEN}, setup: () => ({ phase: async () => 'full' }) })
`
const NEEDS_MOON = `import { definePlugin, defineService } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const parameters = { type: 'object', properties: {}, additionalProperties: false }
export default definePlugin({
  requires: { moon: ${MOON_TOKEN} },
  setup(scope, { moon }) {
    const call = async (_, ctx) => ({ content: [{ type: 'text', text: await moon.phase(ctx) }] })
    scope.add(Tools, 'tides', { description: 'Tells the tides', category: 'time', effects: [], parameters, call })
  },
})
`
const NOTHING = "import { definePlugin } from '@svc/core'\nexport default definePlugin({ setup() {} })\n"

describe('installed plugins without a server', function () {
  this.timeout(120_000)
  const it = sideBySideIn(inWorkspace)
  const itInSandbox = itWith('bubblewrap', it)

  itInSandbox('are refused at the start once a file of them has changed, with the hint; updated they start', async workspace => {
    const { svc, folder } = workspace
    const from = await tidesFolder(folder, { version: '1.0.0', asksCore: true })
    const { code, err } = await svc('plugins', 'install', from, '--yes')
    expect(code, err).to.equal(0)
    expect((await svc('tools', 'call', 'tides')).out).to.contain('the tides of 1.0.0')
    const file = join(await setOf(workspace), 'node_modules', TIDES, 'index.js')
    await writeFile(file, `${await readFile(file, 'utf8')}\n`)
    const started = await svc('serve', '--port', '0')
    expect(started.code).to.equal(1)
    expect(started.err).to.contain(`PLUGIN_CHANGED  ${TIDES}`).and.contain('index.js').and.contain(`svc plugins update ${TIDES}`)
    expect((await svc('config', 'check')).err).to.contain(`PLUGIN_CHANGED  ${TIDES}`)
    const doctor = await svc('plugins', 'doctor')
    expect(doctor.code).to.equal(1)
    expect(doctor.out).to.match(/^fail +files /m)
    const again = await svc('plugins', 'update', TIDES, '--yes')
    expect(again.code, again.err).to.equal(0)
    expect((await svc('plugins', 'doctor')).out).to.contain('All checks passed')
  })

  it('with commands need --trust in-process, add their commands, and run no command from a changed file', async workspace => {
    const { svc, folder } = workspace
    const from = await tidesFile(folder, { version: '1.0.0', ...COMMAND })
    const refused = await svc('plugins', 'install', from, '--yes', '--isolation', 'in-process')
    expect(refused.code).to.equal(1)
    expect(refused.err).to.contain(`PLUGIN_NEEDS_TRUST  ${TIDES}`).and.contain('--trust')
    const { code, err } = await svc('plugins', 'install', from, '--yes', '--isolation', 'in-process', '--trust')
    expect(code, err).to.equal(0)
    expect(await svc('tides', 'now')).to.deep.equal({ code: 0, out: 'high\n', err: '' })
    await writeFile(join(await setOf(workspace), 'node_modules', TIDES, 'commands.js'), "console.log('stolen')\n")
    const changed = await svc('tides', 'now')
    expect(changed).to.deep.include({ code: 1, out: '' })
    expect(changed.err).to.contain(`PLUGIN_CHANGED  ${TIDES}`)
    expect((await svc('plugins', 'uninstall', TIDES)).code).to.equal(0)
    const left = await readdir(workspace.home)
    expect(left.filter(name => name.includes('plugins'))).to.deep.equal([])
  })

  itInSandbox('come to a machine without network as a bundle, byte for byte; half of it changes nothing', async workspace => {
    const { svc, folder, home } = workspace
    const file = await tidesFile(folder, { version: '1.0.0' })
    expect((await svc('plugins', 'install', file, '--yes')).code).to.equal(0)
    const bundle = join(folder, 'bundle.tgz')
    const packed = await svc('plugins', 'pack', 'bundle.tgz', '--json')
    expect(JSON.parse(packed.out)).to.deep.include({ ok: true, plugins: [`${TIDES} 1.0.0`] })
    const half = join(folder, 'half.tgz')
    await copyFile(bundle, half)
    await truncate(half, 2_000)
    const before = await workspace.lock()
    const cut = await svc('plugins', 'install', half, '--yes')
    expect(cut.code).to.equal(1)
    expect(cut.err).to.contain('BUNDLE_INVALID')
    expect(await workspace.lock()).to.equal(before)
    const there = join(folder, 'there')
    const bin = join(folder, 'bin')
    await mkdir(bin)
    await writeFile(join(bin, 'npm'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
    const restored = await runSvc(['plugins', 'install', bundle, '--yes'], {
      home: there,
      cwd: folder,
      env: { PATH: `${bin}:${process.env.PATH}` },
    })
    expect(restored.code, restored.err).to.equal(0)
    const modules = (root: string) =>
      setOf({ home: root } as PluginWorkspace).then(set => filesOf(join(set, 'node_modules', TIDES)))
    expect(await modules(there)).to.deep.equal(await modules(home))
    expect((await runSvc(['tools', 'call', 'tides'], { home: there, cwd: folder })).out).to.contain('the tides of 1.0.0')
  })

  itInSandbox('stay as they were whatever cannot be installed, each told by its code', async workspace => {
    const { svc, folder } = workspace
    expect((await svc('plugins', 'install', await tidesFile(folder, { version: '1.0.0' }), '--yes')).code).to.equal(0)
    const before = await workspace.lock()
    const plain = join(folder, 'plain')
    await mkdir(plain)
    await writeFile(join(plain, 'package.json'), '{"name":"plain","version":"1.0.0"}')
    const more = "scope.add(Tools, 'more', { description: 'x', category: 'time', effects: [], parameters, call })"
    const bad: readonly (readonly [code: string, ...args: string[]])[] = [
      ['PLUGIN_NOT_A_PLUGIN', plain],
      ['NPM_FAILED', 'svc-plugin-elsewhere'],
      ['PLUGIN_ISOLATION_UNFIT', await tidesFile(folder, { version: '2.0.0' }), '--isolation', 'quickjs'],
      ['PLUGIN_NEEDS_TRUST', await tidesFile(folder, { version: '2.0.0' }), '--isolation', 'in-process'],
      ['MANIFEST_OLDER', await tidesFile(folder, { version: '2.0.0', svc: { api: 0 } })],
      ['PLUGIN_NEEDS_TRUST', await tidesFile(folder, { version: '2.0.0', svc: { contributes: { mounts: ['tides'] } } })],
      ['NAME_TAKEN', await tidesFile(folder, { version: '1.0.0', name: 'svc-plugin-other' })],
      ['CONTRIBUTION_UNDECLARED', await tidesFile(folder, { version: '4.0.0', setup: more })],
      ['npm run build', await tidesFile(folder, { version: '3.0.0', main: 'dist/index.js' })],
      ['IMPORT_FAILED', await tidesFile(folder, { version: '3.0.0', files: { 'index.js': 'throw new Error("no")' } })],
    ]
    for (const [code, ...args] of bad) {
      const refused = await svc('plugins', 'install', ...args, '--yes')
      expect([refused.code, refused.err], args.join(' ')).to.satisfy(
        ([exit, err]: [number, string]) => exit === 1 && err.includes(code)
      )
      expect(refused.err).to.not.contain(folder)
    }
    expect(await workspace.lock()).to.equal(before)
    expect((await svc('tools', 'call', 'tides')).out).to.contain('the tides of 1.0.0')
  })

  itInSandbox('that make providers are held to their module too, where nothing is configured of them yet', async workspace => {
    const { svc, folder } = workspace
    const instances = { section: 'providers', type: 'parrot' }
    const parrot = { version: '1.0.0', name: 'svc-plugin-parrot', svc: { kind: 'provider', contributes: {}, instances } }
    const unbuilt = await tidesFolder(folder, { ...parrot, main: 'dist/index.js' })
    const trusted = ['--isolation', 'in-process', '--trust']
    for (const args of [
      ['install', unbuilt],
      ['install', unbuilt, ...trusted],
      ['link', unbuilt],
    ]) {
      const { code, err } = await svc('plugins', ...args, '--yes')
      expect([code, err], args.join(' ')).to.satisfy(
        ([exit, text]: [number, string]) => exit === 1 && text.includes('npm run build')
      )
      expect(existsSync(join(workspace.home, 'svc-plugins.lock'))).to.equal(false)
    }
    const index = `import { definePlugin } from '@svc/core'
export default definePlugin({ instances: 'providers', type: 'parrot', setup() {} })
`
    const built = await svc('plugins', 'install', await tidesFolder(folder, { ...parrot, files: { 'index.js': index } }), '--yes')
    expect(built.code, built.err).to.equal(0)
    expect(await workspace.lock()).to.match(/"declares":[^]*"parrot"/)
  })

  itInSandbox('run their install scripts only where they are let, and ask nobody with --offline', async workspace => {
    const { svc, folder } = workspace
    const scripts = { postinstall: 'echo done > ran' }
    const from = await tidesFile(folder, { version: '1.0.0', scripts })
    const ran = async () => (await readdir(join(await setOf(workspace), 'node_modules', TIDES))).includes('ran')
    const careful = await svc('plugins', 'install', from, '--yes', '--offline')
    expect(careful.code, careful.err).to.equal(0)
    expect(careful.out + careful.err).to.match(/postinstall.*will not run \(--allow-scripts runs them\)/)
    expect(await ran()).to.equal(false)
    expect((await svc('plugins', 'uninstall', TIDES)).code).to.equal(0)
    const allowed = await svc('plugins', 'install', from, '--yes', '--offline', '--allow-scripts')
    expect(allowed.code, allowed.err).to.equal(0)
    expect(allowed.out + allowed.err).to.contain('WILL RUN NOW')
    expect(await ran()).to.equal(true)
    const unknown = await svc('plugins', 'install', 'svc-plugin-elsewhere', '--yes', '--offline')
    expect(unknown.code).to.equal(1)
    expect(unknown.err).to.contain('--offline')
  })

  it('cannot be uninstalled, disabled or updated without a service that another plugin requires', async workspace => {
    const { svc, folder } = workspace
    const moon = await tidesFile(folder, {
      version: '1.0.0',
      name: 'svc-plugin-moon',
      svc: MOON,
      files: { 'index.js': MOON_CODE },
    })
    const tides = await tidesFile(folder, { version: '1.0.0', files: { 'index.js': NEEDS_MOON } })
    const trusted = ['--isolation', 'in-process', '--trust', '--yes']
    const alone = await svc('plugins', 'install', tides, ...trusted)
    expect([alone.code, alone.err]).to.satisfy(([code, err]: [number, string]) => code === 1 && err.includes('SERVICE_MISSING'))
    const both = await svc('plugins', 'install', moon, tides, ...trusted)
    expect(both.code, both.err).to.equal(0)
    const before = await workspace.lock()
    const less = await tidesFile(folder, {
      version: '2.0.0',
      name: 'svc-plugin-moon',
      svc: { contributes: {} },
      files: { 'index.js': NOTHING },
    })
    for (const command of [
      ['uninstall', 'svc-plugin-moon'],
      ['disable', 'svc-plugin-moon'],
      ['install', less, ...trusted],
    ]) {
      const { code, err } = await svc('plugins', ...command)
      expect(code, command.join(' ')).to.equal(1)
      expect(err).to.contain('SERVICE_MISSING').and.contain(TIDES)
      expect(await workspace.lock()).to.equal(before)
    }
    expect((await svc('tools', 'call', 'tides')).out).to.equal('full\n')
    expect((await svc('plugins', 'uninstall', 'svc-plugin-moon', TIDES)).code).to.equal(0)
  })

  itInSandbox('may be links: what is saved in the folder is what runs', async workspace => {
    const { svc, folder } = workspace
    const from = await tidesFolder(folder, { version: '1.0.0' })
    const { code, err } = await svc('plugins', 'link', from, '--yes')
    expect(code, err).to.equal(0)
    const file = join(from, 'index.js')
    await writeFile(file, (await readFile(file, 'utf8')).replace('the tides of 1.0.0', 'saved'))
    expect((await svc('tools', 'call', 'tides')).out).to.contain('saved')
    const again = await svc('plugins', 'link', from, '--json')
    expect(JSON.parse(again.out)).to.deep.equal({ ok: true, plugins: [], removed: [] })
    await writeFile(file, "export default { setup() { throw new Error('no moon tonight') } }")
    const doctor = await svc('plugins', 'doctor')
    expect(doctor.code, doctor.out).to.equal(1)
    expect(doctor.out).to.match(/^fail +start .*no moon tonight/m)
    await writeFile(join(workspace.home, 'svc-plugins.lock'), '{')
    expect((await svc('plugins', 'doctor')).out)
      .to.match(/^fail +lock /m)
      .and.contain('LOCK_INVALID')
  })
})

/** Path → content. */
async function filesOf(folder: string): Promise<Record<string, string>> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(item => item.isFile())
  const paths = files.map(file => join(file.parentPath, file.name)).sort()
  return Object.fromEntries(
    await Promise.all(paths.map(async path => [path.slice(folder.length), await readFile(path, 'base64')]))
  )
}
