import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { routesOf } from '../support/stranger.ts'
import { startService } from '../support/service.ts'
import { describeWith } from '../support/needs.ts'

const CODE = `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
import { readFileSync } from 'node:fs'
export default definePlugin({
  setup({ add }) {
    add(Routes, 'peek', {
      method: 'GET', path: '/peek', summary: 'Reads a file', public: true,
      handle: async ({ query }) => {
        try { return { body: { read: readFileSync(query.path, 'utf8') } } } catch (error) { return { body: { failed: error.code } } }
      },
    })
  },
})`

describeWith('bubblewrap', 'a dependency of an isolated plugin that is no package name', () => {
  let folder: string
  before(async () => {
    // apart from /tmp, of which each sandbox has its own
    folder = await realpath(await mkdtemp('/var/tmp/svc-names-'))
    await writeFile(join(folder, 'secret'), 'the secret of the host')
  })
  after(() => rm(folder, { recursive: true }))

  async function plugin(name: string, dependency: string): Promise<string> {
    const place = join(folder, name)
    await mkdir(place)
    const manifest = { api: 1, kind: 'surface', ...routesOf({ peek: { method: 'GET', path: '/peek' } }) }
    const dependencies = { [dependency]: '1.0.0' }
    await writeFile(
      join(place, 'package.json'),
      JSON.stringify({ name, version: '1.0.0', type: 'module', main: 'index.js', svc: manifest, dependencies })
    )
    await writeFile(join(place, 'index.js'), CODE)
    const config = join(folder, `${name}.json`)
    await writeFile(config, JSON.stringify({ plugins: [{ use: place, isolation: 'process' }] }))
    return config
  }

  async function refusedOrFails(config: string, dependency: string, env = {}): Promise<void> {
    const started = await startService({ args: ['--config', config], env }).catch((error: Error) => error.message)
    if (typeof started === 'string') return void expect(started).to.contain('ISOLATION_DEPENDENCY').and.contain(dependency)
    await using service = started
    const answer = await fetch(`${service.url}/peek?path=${join(folder, 'secret')}`)
    expect.fail(`the plugin runs, and a read of a file of the machine answers ${await answer.text()}`)
  }

  for (const [at, dependency] of ['file:tmp', '@file:x/tmp', 'node:fs', '../secret', 'a%2f..%2fb'].entries())
    it(`${dependency} shows the plugin nothing of the machine: it is refused`, async () => {
      const config = await plugin(`svc-plugin-peek-${at}`, dependency)
      await refusedOrFails(config, dependency)
    })

  it('shows nothing more where a machine without a sandbox holds the plugin by permissions of Node alone', async () => {
    const config = await plugin('svc-plugin-peek-open', 'file:tmp')
    const { plugins } = JSON.parse(await readFile(config, 'utf8')) as { plugins: object[] }
    const isolation = { without_sandbox: 'run-with-open-network-and-unlimited-memory' }
    await writeFile(config, JSON.stringify({ plugins, isolation }))
    await refusedOrFails(config, 'file:tmp', { PATH: join(folder, 'without-bubblewrap') })
  })

  it('does not hinder a plugin whose dependencies have names, however old', async () => {
    const config = await plugin('svc-plugin-peek-good', "@some-scope/Old_name~!*'()")
    await using service = await startService({ args: ['--config', config] })
    const answer = await fetch(`${service.url}/peek?path=${join(folder, 'secret')}`)
    expect(await answer.json()).to.deep.equal({ failed: 'ERR_ACCESS_DENIED' })
  })
})
