import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'

const GIVEN = ['@svc/core', '@svc/cli', '@svc/plugin-kit', '@svc/provider-http', '@svc/storage-kit']

/** Its tool imports all packages that svc gives to plugins: one at once, the others when it is called. */
const INDEX = `import { definePlugin, SvcError } from '@svc/core'
import { Tools } from '@svc/core/contracts'
import { createUpstream } from '@svc/provider-http'
const parameters = { type: 'object', properties: {}, additionalProperties: false }
export default definePlugin({
  setup(scope) {
    scope.add(Tools, 'given', {
      description: 'Imports what svc gives.', category: 'test', effects: ['read'], parameters,
      async call() {
        const [kit, storage] = [await import('@svc/plugin-kit'), await import('@svc/storage-kit')]
        // the class of the error that the library throws is the plugin's own: there is one copy of the core
        const same = (() => { try { createUpstream({ provider: 'x', baseUrl: 'ftp://x', headers: {}, secrets: [] }) } catch (error) { return error instanceof SvcError } })()
        const text = [typeof createUpstream, Object.keys(kit).length > 0, Object.keys(storage).length > 0, same].join(' ')
        return { content: [{ type: 'text', text }] }
      },
    })
  },
})
`
const COMMANDS = `import { SvcCommand } from '@svc/cli/command'
class Given extends SvcCommand {
  static summary = 'Show what svc gives'
  static examples = ['<%= config.bin %> <%= command.id %>']
  async run() { this.print('a command class') }
}
export const COMMANDS = { given: Given }
`
const PACKAGE = {
  name: 'svc-plugin-given',
  version: '1.0.0',
  type: 'module',
  exports: { '.': './index.js', './commands': './commands.js', './package.json': './package.json' },
  // required ones, too: npm finds them in the set, and asks no registry
  peerDependencies: Object.fromEntries(GIVEN.map(name => [name, '^0.1.0'])),
  svc: { api: 1, kind: 'tool', contributes: { tools: ['given'], commands: ['given'] } },
}
const ANSWER = 'function true true true'

describeWith('bubblewrap', 'the packages that svc gives to plugins', function () {
  this.timeout(180_000)
  let folder: string
  let plugin: string
  const env = { npm_config_registry: 'http://127.0.0.1:9/', npm_config_offline: 'true' }
  const svc = (home: string, ...args: string[]) => runSvc(args, { home: join(folder, home), cwd: folder, env })

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-given-'))
    plugin = join(folder, 'plugin')
    await mkdir(plugin)
    const files = { 'package.json': JSON.stringify(PACKAGE), 'index.js': INDEX, 'commands.js': COMMANDS }
    for (const [name, text] of Object.entries(files)) await writeFile(join(plugin, name), text)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  for (const [isolation, flags] of [
    ['process', []],
    ['in-process', ['--isolation', 'in-process', '--trust']],
  ] as const)
    it(`are links in the set of an installed plugin, which runs ${isolation}`, async () => {
      const { code, out, err } = await svc(isolation, 'plugins', 'install', plugin, '--yes', ...flags)
      expect(code, `${out}\n${err}`).to.equal(0)
      const called = await svc(isolation, 'tools', 'call', 'given', '{}')
      expect(called.out, called.err).to.include(ANSWER)
      const ran = await svc(isolation, 'given')
      expect(ran.out, ran.err).to.include('a command class')
      const doctor = await svc(isolation, 'plugins', 'doctor')
      expect(doctor.out).to.include('all dependencies are installed in a matching version')
    })

  it('are links to its own packages in a build', async () => {
    const { code, err } = await svc('process', 'build', join(folder, 'built'))
    expect(code, err).to.equal(0)
    const moved = join(folder, 'moved')
    await cp(join(folder, 'built'), moved, { recursive: true, verbatimSymlinks: true })
    await rm(join(folder, 'built'), { recursive: true })
    const run = promisify(execFile)
    const { stdout } = await run(process.execPath, ['start.mjs', 'tools', 'call', 'given', '{}'], {
      cwd: moved,
      env: { PATH: process.env.PATH },
    })
    expect(stdout).to.include(ANSWER)
    const [set] = await promisify(execFile)('ls', [join(moved, 'plugins/sets')]).then(one => one.stdout.trim().split('\n'))
    expect(await readlink(join(moved, 'plugins/sets', set!, 'host/provider-http'))).to.match(/node_modules\/@svc\/provider-http$/)
  })

  for (const isolation of ['process', 'in-process'] as const)
    it(`are those of svc for a folder with no packages around it, which runs ${isolation}`, async () => {
      const config = { plugins: [{ use: plugin, isolation }] }
      await writeFile(join(folder, `${isolation}.json`), JSON.stringify(config))
      const called = await svc('none', 'tools', 'call', 'given', '{}', '--config', join(folder, `${isolation}.json`))
      expect(called.out, called.err).to.include(ANSWER)
    })
})
