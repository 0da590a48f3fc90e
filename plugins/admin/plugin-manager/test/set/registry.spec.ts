import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { planChange, searchPlugins, setFolder, verifySet } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import { type PackageJson, type Registry, startRegistry } from '../../../../../test/support/registry.ts'
import {
  CODE,
  failing,
  failure,
  NOWHERE,
  openSetWorkspace,
  type SetWorkspace,
  plugin,
  settings,
  stateOf,
} from './support/workspace.ts'

const RAN = { scripts: { postinstall: "node -e \"require('node:fs').writeFileSync('ran', Object.keys(process.env).join())\"" } }
const dependency = (name: string): PackageJson => ({ name, version: '1.2.0', main: 'index.js', ...RAN })
const weather = (version: string, network: string[]) =>
  plugin('svc-plugin-weather', version, {
    ...RAN,
    description: 'Shows the weather',
    dependencies: { 'dep-of-weather': '^1' },
    svc: { api: 1, kind: 'tool', permissions: { network } },
  })

/** A server that answers all with one status. */
async function answering(status: number) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.writeHead(status).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, asked, [Symbol.asyncDispose]: () => promisify(server.close.bind(server))() }
}

describe('plugins of a registry', function () {
  this.timeout(30_000)
  let registry: Registry
  let workspace: SetWorkspace
  let integrity: string
  before(async () => {
    registry = await startRegistry()
    workspace = await openSetWorkspace(registry.url)
    await publish(dependency('dep-of-weather'))
    const attestations = { url: 'x', provenance: { predicateType: 'https://slsa.dev/provenance/v1' } }
    integrity = await publish(weather('1.0.0', ['api.example.com']), { attestations, signatures: [{ keyid: 'a', sig: 'b' }] })
  })
  after(async () => {
    await workspace[Symbol.asyncDispose]()
    await registry[Symbol.asyncDispose]()
  })

  const publish = async (pkg: PackageJson, dist = {}, as = pkg) => registry.publish(await workspace.tarball(pkg, CODE), as, dist)
  const modules = async () => join(setFolder(workspace.home, await workspace.lock())!, 'node_modules')
  const plan = (spec: string, offline = false) => planChange(workspace.home, { install: [{ spec }], offline })
  async function refused(spec: string, offline = false) {
    const before = await stateOf(workspace)
    const why = await failure(plan(spec, offline))
    expect(await stateOf(workspace)).to.deep.equal(before)
    return why
  }

  it('show what they are, bring and ask for; come with exact version and integrity; and of their scripts only allowed ones run, with no secret', async () => {
    const before = settings({ SECRET_OF_MINE: 'x' })
    await using change = await planChange(workspace.home, { install: [{ spec: 'svc-plugin-weather@^1', scripts: true }] })
    const [candidate] = change.candidates
    expect(candidate).to.deep.include({
      version: '1.0.0',
      description: 'Shows the weather',
      origin: { kind: 'registry', spec: 'svc-plugin-weather@^1' },
      installScripts: ['postinstall'],
      dependencyScripts: ['dep-of-weather@1.2.0'],
      dependencies: 1,
      registry: { signatures: 1, provenance: 'https://slsa.dev/provenance/v1' },
      integrity,
    })
    const lock = await change.commit((await change.build()).plugins)
    settings(before)
    expect(await workspace.lock()).to.deep.equal(lock)
    expect(lock.plugins[0]).to.deep.include({
      version: '1.0.0',
      integrity,
      scripts: true,
      permissions: { network: ['api.example.com'] },
    })
    expect(await workspace.installed('svc-plugin-weather/ran'))
      .to.contain('PATH')
      .and.not.contain('SECRET_OF_MINE')
    expect(existsSync(join(await modules(), 'dep-of-weather', 'index.js'))).to.equal(true)
    expect(existsSync(join(await modules(), 'dep-of-weather', 'ran'))).to.equal(false)
    expect(await verifySet(workspace.home, lock)).to.deep.equal([])
  })

  it('are updated within their range, with the difference of what they ask for', async () => {
    await publish(weather('1.1.0', ['other.example.com']))
    await using change = await planChange(workspace.home, { update: 'all' })
    expect(change.candidates[0]).to.deep.include({
      from: '1.0.0',
      version: '1.1.0',
      scripts: true,
      permissionChange: { added: ['network other.example.com'], removed: ['network api.example.com'] },
    })
  })

  it('are found by their keyword', async () => {
    await publish({ name: 'weather-of-others', version: '1.0.0' })
    const found = await searchPlugins('weather')
    expect(found.map(({ name, description }) => [name, description])).to.deep.equal([['svc-plugin-weather', 'Shows the weather']])
  })

  it('cannot be searched for where the registry has no search: the error explains the alternative', async () => {
    await using none = await answering(404)
    const before = settings({ npm_config_registry: none.url })
    const error = await failing(searchPlugins('weather'))
    settings(before)
    expect([error.code, error.message]).to.deep.equal(['PLUGIN_SEARCH_FAILED', 'the registry does not answer a search (404)'])
    expect(error.hint).to.contain('svc plugins install <name>')
  })

  it('bring nothing from an address, and no address is requested: neither for what a plugin names nor for what a package of the registry does', async () => {
    await using elsewhere = await answering(200)
    const evil = `${elsewhere.url}/evil.tgz`
    for (const [name, spec] of [
      ['dep-remote', evil],
      ['dep-git', `git+${evil}`],
    ] as const) {
      await publish({ name, version: '1.0.0', dependencies: { evil: spec } })
      const asks = plugin('svc-plugin-far', '1.0.0', { dependencies: { [name]: '1' } })
      expect(await refused(await workspace.tarball(asks, CODE)), name).to.equal('PLUGIN_DEPENDENCY_STRAY')
    }
    const direct = plugin('svc-plugin-near', '1.0.0', { optionalDependencies: { evil } })
    expect(await refused(await workspace.tarball(direct, CODE))).to.equal('PLUGIN_DEPENDENCY_STRAY')
    expect(elsewhere.asked).to.deep.equal([])
  })

  it('are refused where there is none, no such version, a dependency is missing, another core is wanted, or the name is another', async () => {
    expect(await refused('svc-plugin-unknown')).to.equal('PLUGIN_NOT_FOUND package')
    expect(await refused('svc-plugin-weather@7')).to.equal('PLUGIN_NOT_FOUND version')
    const lacking = plugin('svc-plugin-lacking', '1.0.0', { dependencies: { 'unknown-package': '1' } })
    expect(await refused(await workspace.tarball(lacking, CODE))).to.equal('PLUGIN_NOT_FOUND package')
    const later = plugin('svc-plugin-later', '1.0.0', { peerDependencies: { '@svc/core': '^99' } })
    expect(await refused(await workspace.tarball(later, CODE))).to.equal('NPM_FAILED conflict')
    await publish(plugin('svc-plugin-evil'), {}, plugin('svc-plugin-good'))
    expect(await refused('svc-plugin-good')).to.equal('PLUGIN_NAME_DIFFERS')
  })

  it('leave the set as it was where the registry fails, is not there, or another tarball comes than it promised; each with its own error', async () => {
    await using broken = await answering(500)
    const before = settings({ npm_config_registry: broken.url })
    expect(await refused('svc-plugin-fresh')).to.equal('NPM_FAILED registry')
    settings({ npm_config_registry: NOWHERE })
    expect(await refused('svc-plugin-fresh')).to.equal('NPM_FAILED network')
    expect(await refused('svc-plugin-fresh', true)).to.equal('NPM_FAILED not-cached')
    settings(before)
    await publish(plugin('svc-plugin-swapped'), { integrity: `sha512-${'A'.repeat(86)}==` })
    expect(await refused('svc-plugin-swapped')).to.equal('NPM_FAILED integrity')
  })

  it('go and come without network: what stays is kept, what npm has in its cache is installed', async () => {
    await workspace.change({ install: [{ spec: await workspace.tarball(plugin('svc-plugin-other', '1.0.0', RAN), CODE) }] })
    expect(existsSync(join(await modules(), 'svc-plugin-other', 'ran'))).to.equal(false)
    const before = settings({ npm_config_registry: NOWHERE })
    const lock = await workspace.change({ uninstall: ['svc-plugin-other'] })
    expect(lock.plugins.map(item => item.name)).to.deep.equal(['svc-plugin-weather'])
    expect(await verifySet(workspace.home, lock)).to.deep.equal([])
    expect(await workspace.installed('svc-plugin-weather/ran')).to.contain('PATH')
    expect(existsSync(join(await modules(), 'svc-plugin-other'))).to.equal(false)
    settings(before)
    const next = await workspace.change({ install: [{ spec: 'svc-plugin-weather@1.1.0' }], offline: true })
    expect(next.plugins[0]).to.deep.include({ version: '1.1.0', scripts: false })
    expect(existsSync(join(await modules(), 'svc-plugin-weather', 'ran'))).to.equal(false)
  })
})
