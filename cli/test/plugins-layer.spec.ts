import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { planHost } from '@svc/core'
import { expect } from 'chai'
import type { Lock, LockedPlugin } from '@svc/plugin-manager/set'
import { watchedPaths } from '@svc/runtime/plugin-paths'
import { commandSources } from '../src/contributed.ts'
import { hostOptions, programOf } from '../src/host-options.ts'
import { findSettings } from '../src/settings.ts'
import { writeFiles } from '../../test/support/registry.ts'
import { COMMAND, TIDES, tidesFolder } from '../../test/support/tides.ts'

const LOCKED: LockedPlugin = {
  name: TIDES,
  version: '1.0.0',
  origin: { kind: 'link', spec: '' },
  integrity: '',
  files: '',
  isolation: 'process',
  enabled: true,
  permissions: { env: ['TIDES_KEY'] },
  scripts: false,
  trusted: false,
}

describe('what is installed, as configuration', () => {
  let home: string
  let folder: string
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-layer-'))
    folder = await tidesFolder(home, { version: '1.0.0', ...COMMAND })
  })
  afterEach(() => rm(home, { recursive: true, force: true }))

  const placeWith = (change: Partial<LockedPlugin>) => {
    const plugin = { ...LOCKED, origin: { kind: 'link', spec: folder }, ...change } satisfies LockedPlugin
    const installed: Lock = { version: 1, set: '', plugins: [plugin], dependencies: { files: '', stamp: '' } }
    return { home, cwd: home, env: {}, installed }
  }
  const entry = async (change: Partial<LockedPlugin> = {}) =>
    (await findSettings({}, placeWith(change))).plugins.find(plugin => plugin.name === TIDES || plugin.use === TIDES)

  it('has lower precedence than configuration files, and resolves plugin names', async () => {
    const use = pathToFileURL(join(folder, '/')).href
    expect(await entry()).to.deep.include({ use, isolation: 'process', permissions: { env: ['TIDES_KEY'] } })
    await writeFile(
      join(home, 'svc.config.json'),
      JSON.stringify({ plugins: [{ use: TIDES, isolation: 'in-process', optional: true }] })
    )
    expect(await entry()).to.deep.include({ use, isolation: 'in-process', optional: true })
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [{ use: TIDES, enabled: false }] }))
    expect(await entry()).to.equal(undefined)
  })

  it('omits disabled plugins', async () => {
    expect(await entry({ enabled: false })).to.equal(undefined)
  })

  it('replaces no plugin of svc, and is not read from folders above the svc home', async () => {
    const above = join(home, 'node_modules')
    const own = join(home, 'own')
    const within = join(own, 'plugins', 'node_modules')
    for (const [modules, name] of [
      [above, '@svc/plugin-tools-time'],
      [above, 'svc-plugin-above'],
      [within, 'svc-plugin-within'],
    ] as const) {
      const svc = { api: 1, kind: 'command', contributes: { commands: [name.replace(/\W/g, '')] } }
      const exports = { '.': './index.js', './commands': './commands.js' }
      await writeFiles(join(modules, name), {
        'package.json': JSON.stringify({ name, version: '1.0.0', type: 'module', exports, svc }),
        'index.js': 'export default { setup() {} }',
        'commands.js': 'export const COMMANDS = {}',
      })
    }
    const names = ['@svc/plugin-tools-time', 'svc-plugin-above', 'svc-plugin-within']
    await writeFiles(own, { 'svc.config.json': JSON.stringify({ plugins: names }) })
    const place = { home: own, cwd: own, env: {} }
    const ids = (await commandSources(undefined, place)).flatMap(commandSource => commandSource.ids)
    expect(ids).to.include('svcpluginwithin')
    expect(ids.filter(id => /time|above/.test(id))).to.deep.equal([])
    const options = hostOptions(await findSettings({}, place), own)
    const plan = await planHost({
      ...options,
      plugins: options.config.plugins.filter(({ use }) => typeof use === 'string' && names.includes(use)),
    })
    expect(plan.loaded.map(item => item.name)).to.have.members(['@svc/plugin-tools-time', 'svc-plugin-within'])
    expect(plan.loaded.some(item => item.found.folder?.startsWith(above))).to.equal(false)
    expect(plan.problems.map(problem => `${problem.code} ${problem.plugin}`)).to.include('PLUGIN_UNKNOWN svc-plugin-above')
  })

  it('watches linked plugins, and adds their commands in-process and isolated', async () => {
    const place = placeWith({ isolation: 'in-process', trusted: true })
    expect(watchedPaths({ ...programOf(await findSettings({}, place), home), cwd: home })).to.include(folder)
    expect((await commandSources(undefined, place)).flatMap(commandSource => commandSource.ids)).to.include('tides:now')
    const walled = await commandSources(undefined, placeWith({}))
    expect(walled.find(commandSource => commandSource.ids.includes('tides:now'))?.permissions).to.be.an('object')
  })
})
