import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { appendFile, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { importFrom } from '@svc/core'
import { changeLock, type Lock, lockFile, planChange, readLock, setFolder, sweepSets, verifySet } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { CONDITIONS } from '../../../../../test/support/entry.ts'
import { writeFiles } from '../../../../../test/support/registry.ts'
import { CODE, failing, failure, openSetWorkspace, type SetWorkspace, plugin, stateOf } from './support/workspace.ts'

const run = promisify(execFile)
const INSTALLING = fileURLToPath(new URL('support/installing.ts', import.meta.url))

/** Brings its dependency with it, so that no registry is asked. */
const BUNDLING = { dependencies: { helper: '1.0.0' }, bundleDependencies: ['helper'] }
const HELPER = {
  'node_modules/helper/package.json': JSON.stringify({ name: 'helper', version: '1.0.0', main: 'index.js' }),
  'node_modules/helper/index.js': 'export default 1\n',
}

describe('what is installed', () => {
  let workspace: SetWorkspace
  let tarball: string
  before(async () => {
    workspace = await openSetWorkspace()
    const core = "export { definePlugin } from '@svc/core'\nexport default { setup() {} }\n"
    tarball = await workspace.tarball(
      plugin('svc-plugin-one', '1.0.0', { ...BUNDLING, peerDependencies: { '@svc/core': '*' } }),
      {
        'index.js': core,
        ...HELPER,
      }
    )
    await workspace.change({ install: [{ spec: tarball }] })
  })
  after(() => workspace[Symbol.asyncDispose]())

  const problems = async () =>
    (await verifySet(workspace.home, await workspace.lock())).map(item =>
      [item.code, item.plugin ?? '', ...((item.details.files as string[]) ?? [])].join(' ').trim()
    )
  const fileOf = async (path: string) =>
    join(setFolder(workspace.home, await workspace.lock())!, 'node_modules', 'svc-plugin-one', path)

  it('is one file that names a set, for its owner alone, and works with this very core', async () => {
    const text = await readFile(lockFile(workspace.home), 'utf8')
    expect((await stat(lockFile(workspace.home))).mode & 0o777).to.equal(0o600)
    expect(text.endsWith('}\n')).to.equal(true)
    const [first] = (await workspace.lock()).plugins
    expect(first).to.deep.include({
      name: 'svc-plugin-one',
      version: '1.0.0',
      isolation: 'process',
      enabled: true,
      scripts: false,
      trusted: false,
      permissions: {},
    })
    expect(first!.origin).to.deep.equal({ kind: 'tarball', spec: tarball })
    const from = pathToFileURL(`${setFolder(workspace.home, await workspace.lock())}/`).href
    const module = (await importFrom('svc-plugin-one', from)) as { definePlugin: unknown }
    expect(module.definePlugin).to.equal((await import('@svc/core')).definePlugin)
  })

  it('is found changed where a file of its own has other bytes, is more (also a pipe without a writer), or is gone; the error names it', async () => {
    expect(await problems()).to.deep.equal([])
    const [file, more] = [await fileOf('index.js'), await fileOf('more.js')]
    const before = await readFile(file)
    await appendFile(file, '//')
    expect(await problems()).to.deep.equal(['PLUGIN_CHANGED svc-plugin-one index.js'])
    await writeFile(file, before)
    await writeFile(more, '')
    expect(await problems()).to.deep.equal(['PLUGIN_CHANGED svc-plugin-one more.js'])
    await rm(more)
    await run('mkfifo', [more])
    expect(await problems()).to.deep.equal(['PLUGIN_CHANGED svc-plugin-one more.js'])
    await rm(more)
    await rm(file)
    expect(await problems()).to.deep.equal(['PLUGIN_CHANGED svc-plugin-one index.js'])
    await writeFile(file, before)
    expect(await problems()).to.deep.equal([])
  })

  it('is found changed where a dependency is, even of the same size and time; not where it was only touched', async () => {
    const file = await fileOf('node_modules/helper/index.js')
    const [before, clock] = [await readFile(file, 'utf8'), join(workspace.folder, 'clock')]
    await writeFile(clock, '')
    await run('touch', ['-r', file, clock])
    await writeFile(file, before.replace('1', '2'))
    await run('touch', ['-r', clock, file])
    expect(await problems()).to.deep.equal(['PLUGIN_CHANGED'])
    await writeFile(file, before)
    expect(await problems()).to.deep.equal([])
    await utimes(file, new Date(0), new Date(0))
    expect(await problems()).to.deep.equal([])
    await writeFile(await fileOf('node_modules/helper/more.js'), '')
    expect(await problems()).to.deep.equal(['PLUGIN_CHANGED'])
    await rm(await fileOf('node_modules/helper/more.js'))
  })

  it('is not looked at where it is disabled, and keeps that over a change', async () => {
    const file = await fileOf('index.js')
    const before = await readFile(file)
    const enable = (enabled: boolean) =>
      changeLock(workspace.home, lock => ({ ...lock, plugins: lock.plugins.map(item => ({ ...item, enabled })) }))
    await enable(false)
    await appendFile(file, '//')
    expect(await problems()).to.deep.equal([])
    await writeFile(file, before)
    await using change = await planChange(workspace.home, { install: [{ spec: tarball }] })
    expect([change.isEmpty, change.candidates[0]!.same, change.candidates[0]!.from]).to.deep.equal([true, true, '1.0.0'])
    expect((await change.build()).plugins[0]!.enabled).to.equal(false)
    await change[Symbol.asyncDispose]()
    await enable(true)
  })

  it('is refused where the lock is not as svc writes it, and no change begins then', async () => {
    const text = await readFile(lockFile(workspace.home), 'utf8')
    const lock = JSON.parse(text) as Record<string, unknown> & { plugins: object[] }
    const broken = [
      '',
      '[]',
      text.slice(0, 50),
      { ...lock, set: '../..' },
      { ...lock, version: 2 },
      { ...lock, plugins: [...lock.plugins, lock.plugins[0]] },
      { ...lock, plugins: [{ ...lock.plugins[0], name: '../x' }] },
    ]
    for (const item of broken) {
      await writeFile(lockFile(workspace.home), typeof item === 'string' ? item : JSON.stringify(item))
      expect(await failure(readLock(workspace.home))).to.equal('LOCK_INVALID')
    }
    expect(await failure(planChange(workspace.home, { uninstall: ['svc-plugin-one'] }))).to.equal('LOCK_INVALID')
    await writeFile(lockFile(workspace.home), text)
    expect(await problems()).to.deep.equal([])
  })

  it('changes once at a time: the second gets an error that names the first, and an aborted one leaves nothing', async () => {
    const before = await stateOf(workspace)
    const other = await workspace.tarball(plugin('svc-plugin-two'), CODE)
    {
      await using _first = await planChange(workspace.home, { install: [{ spec: other }] })
      const error = await failing(planChange(workspace.home, { uninstall: ['svc-plugin-one'] }))
      expect(error).to.deep.include({ code: 'PLUGIN_SET_BUSY', message: error.message })
      expect(error.message).to.contain(`install ${other}`).and.contain(`process ${process.pid}`)
      expect(await failure(changeLock(workspace.home, lock => lock))).to.equal('PLUGIN_SET_BUSY')
      // not in this process alone, and not only until this process has tried once more
      const elsewhere = run(process.execPath, [...CONDITIONS, INSTALLING, workspace.home, other])
      expect((await failing(elsewhere)).message).to.contain('PLUGIN_SET_BUSY')
    }
    expect(await stateOf(workspace)).to.deep.equal(before)
  })

  it('stays as it was where a change is aborted on the way', async () => {
    const before = await stateOf(workspace)
    const other = await workspace.tarball(plugin('svc-plugin-two'), CODE)
    const stop = new AbortController()
    const onProgress = ({ step }: { step: string }) => void (step === 'install' && stop.abort())
    const error = await failing(workspace.change({ install: [{ spec: other }] }, { signal: stop.signal, onProgress }))
    expect(error.name).to.equal('AbortError')
    expect(await stateOf(workspace)).to.deep.equal(before)
  })

  it('may be a link to a folder, which needs no npm; its going needs none either', async () => {
    const folder = join(workspace.folder, 'linked')
    await writeFiles(folder, { 'package.json': JSON.stringify(plugin('svc-plugin-linked', '0.1.0')), ...CODE })
    const options = { npm: '/no/npm' }
    const { set } = await workspace.lock()
    const lock = await workspace.change({ link: [folder] }, options)
    expect(lock.plugins.map(item => [item.name, item.origin.kind, item.files])).to.deep.equal([
      ['svc-plugin-linked', 'link', ''],
      ['svc-plugin-one', 'tarball', lock.plugins[1]!.files],
    ])
    expect([lock.set, await problems()]).to.deep.equal([set, []])
    await rm(folder, { recursive: true })
    expect(await problems()).to.deep.equal(['PLUGIN_FILES_MISSING svc-plugin-linked'])
    await workspace.change({ uninstall: ['svc-plugin-linked'] }, options)
    expect(await problems()).to.deep.equal([])
  })

  it('is put back as it was, within the change and later; and swept when it is not needed', async () => {
    const first = await workspace.lock()
    const next = await workspace.tarball(plugin('svc-plugin-one', '2.0.0'), CODE)
    let committing: Promise<Lock>
    {
      await using change = await planChange(workspace.home, { install: [{ spec: next }] })
      expect(change.candidates[0]).to.deep.include({ from: '1.0.0', version: '2.0.0', same: false })
      expect(await failure(change.commit([]))).to.equal('PLUGIN_SET_UNBUILT')
      const { plugins } = await change.build()
      expect(await workspace.lock()).to.deep.equal(first)
      const tried = await change.commit(plugins, async () => {
        expect((await workspace.lock()).plugins[0]!.version).to.equal('2.0.0')
        return false
      })
      expect(tried).to.deep.equal(first)
      expect([await workspace.lock(), await problems()]).to.deep.equal([first, []])
      committing = change.commit(plugins) // its end waits for this
    }
    const second = await committing
    expect(await problems()).to.deep.equal([])
    expect(second.former).to.equal(first.set)
    await changeLock(workspace.home, () => first)
    expect([await workspace.lock(), await problems()]).to.deep.equal([first, []])
    await changeLock(workspace.home, () => second)
    await sweepSets(workspace.home)
    expect(existsSync(setFolder(workspace.home, first)!)).to.equal(false)
    expect(await problems()).to.deep.equal([])
  })

  it('is gone without a trace after its uninstall', async () => {
    expect((await failing(planChange(workspace.home, { uninstall: ['svc-plugin-on'] }))).hint).to.contain('svc-plugin-one')
    await workspace.change({ uninstall: ['svc-plugin-one'] })
    expect(await workspace.lock()).to.deep.include({ set: '', plugins: [] })
    await sweepSets(workspace.home)
    expect((await stateOf(workspace)).files).to.deep.equal([])
  })
})
