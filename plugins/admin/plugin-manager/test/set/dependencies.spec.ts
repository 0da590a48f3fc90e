import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { strayDependency } from '../../src/set/lock-graph.ts'
import { CODE, failing, openSetWorkspace, type SetWorkspace, plugin, stateOf } from './support/workspace.ts'

describe('what a plugin brings with it', function () {
  this.timeout(60_000)
  let workspace: SetWorkspace
  before(async () => {
    workspace = await openSetWorkspace()
  })
  after(() => workspace[Symbol.asyncDispose]())

  it('is no folder of this machine: npm would link it into the set, and the plugin would read it', async () => {
    const project = join(workspace.folder, 'project')
    await mkdir(project)
    await writeFile(join(project, 'package.json'), JSON.stringify({ name: 'project', version: '1.0.0' }))
    const spec = await workspace.tarball(
      plugin('svc-plugin-reader', '1.0.0', { dependencies: { project: `file:${project}` } }),
      CODE
    )
    const error = await failing(workspace.change({ install: [{ spec }] }))
    expect(error.code).to.equal('PLUGIN_DEPENDENCY_STRAY')
    expect(error.plugin).to.equal('svc-plugin-reader')
    expect(error.message).to.match(/^needs project as .*, which is not a package of the registry$/)
    expect(await stateOf(workspace)).to.deep.equal({ lock: '', files: [] })
  })

  const packages = (asks: string) => ({
    '': { name: 'svc-plugins', dependencies: { 'svc-plugin-a': 'file:tarballs/a.tgz', 'svc-plugin-b': 'file:tarballs/b.tgz' } },
    'node_modules/svc-plugin-a': { dependencies: { lodash: 'npm:strange@4.0.0' } },
    // a missing package has no entry
    'node_modules/svc-plugin-b': { dependencies: { lodash: asks }, peerDependencies: { absent: '*' } },
    'node_modules/lodash': { name: 'strange', version: '4.0.0' },
  })

  it('is given to no other plugin under a name that is not its own', () => {
    const stray = strayDependency({ packages: packages('^4.0.0') })
    expect(stray).to.include({ of: 'svc-plugin-b' })
    expect(stray?.what).to.contain('strange as lodash')
  })

  it('may be a package under another name, for the package that uses that name', () => {
    expect(strayDependency({ packages: packages('npm:strange@^4.0.0') })).to.equal(undefined)
  })
})
