import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { create } from 'tar'
import { runSvc } from '../support/command.ts'
import { itWith } from '../support/needs.ts'
import { inWorkspace, type PluginWorkspace } from '../support/plugin-workspace.ts'
import { startService } from '../support/service.ts'
import { sideBySideIn } from '../support/side-by-side.ts'
import { configureFew, TIDES, tidesFile, tidesFolder } from '../support/tides.ts'

/** Its default is what the plugin would like to reach: nobody has written it, so it opens nothing. */
const CODE = `import { connect } from 'node:net'
import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'

const config = schema({
  type: 'object',
  properties: { url: { type: 'string', default: 'tcp://169.254.169.254:80' }, spare: { type: 'string' } },
})
const parameters = { type: 'object', properties: { how: { type: 'string' } }, additionalProperties: false }
async function call({ how }) {
  if (how === 'text') throw 'only words'
  if (how === 'getter') throw { get message() { throw new Error('no') } }
  if (how === 'coded') throw Object.assign(new Error('no tide at svc://me:s3cret@sea/'), { code: 'TIDE_LOST' })
  if (how === 'type') undefined.tide()
  const [host, port] = scopeConfig.url.split('//')[1].split(':')
  return await new Promise((done, failed) => connect(Number(port) + (how === 'other' ? 1 : 0), host, () => done({ content: [{ type: 'text', text: 'reached' }] })).on('error', failed))
}
let scopeConfig
export default definePlugin({
  section: 'tools.tides',
  config,
  setup(scope) {
    scopeConfig = scope.config
    scope.add(Tools, 'tides', { description: 'Tells the tides', category: 'time', effects: [], parameters, call })
  },
})
`
const SETTINGS = {
  network: ['<tools.tides.url>', '<tools.tides.spare>'],
  env: ['TIDES_KEY', 'HOME', 'HTTP_PROXY', 'NODE_OPTIONS'],
}
const tides = (version: string, more: object = {}) => ({
  version,
  svc: { permissions: SETTINGS },
  files: { 'index.js': CODE },
  ...more,
})
const configure = ({ folder }: PluginWorkspace, settings: object) => configureFew(folder, { tools: { tides: settings } })

describe('consent to the permissions of a plugin', function () {
  this.timeout(120_000)
  const it = itWith('bubblewrap', sideBySideIn(inWorkspace))

  it('shows the values of the configuration in force, and is asked again when one of them changes', async workspace => {
    const { svc, folder } = workspace
    const file = await tidesFile(folder, tides('1.0.0'))
    const unset = await svc('plugins', 'install', file, '--dry-run')
    expect(unset.out).to.contain('connect to the value of tools.tides.url, which is not set; svc asks again when it is')
    await configure(workspace, { url: 'postgres://me:s3cret@db.internal/shop' })
    const installed = await svc('plugins', 'install', file, '--yes')
    expect(installed.code, installed.err).to.equal(0)
    expect(installed.out).to.contain('connect to db.internal:5432 (tools.tides.url)').and.not.contain('s3cret')
    expect(await workspace.lock())
      .to.contain('"db.internal:5432"')
      .and.not.contain('s3cret')
    expect((await svc('config', 'check')).code).to.equal(0)
    expect((await svc('plugins', 'info', TIDES)).out).to.match(/^ {2}accepted {2}connect to db\.internal:5432$/m)

    await configure(workspace, { url: 'postgres://me:s3cret@other.internal:6000/shop' })
    for (const args of [
      ['config', 'check'],
      ['serve', '--port', '0'],
      ['tools', 'call', 'tides'],
    ]) {
      const { code, out, err } = await svc(...args)
      expect(code, args.join(' ')).to.equal(1)
      expect(out + err, args.join(' ')).to.contain(`PERMISSION_NOT_ACCEPTED  ${TIDES}`)
      expect(out + err)
        .to.contain('could connect to other.internal:6000, which you have not accepted')
        .and.not.contain('s3cret')
    }
    const trusting = await runSvc(['config', 'check'], { home: workspace.home, cwd: folder, env: { SVC_ACCEPT_VALUES: '1' } })
    expect(trusting.code, trusting.err).to.equal(0)
    const asked = await svc('plugins', 'update', TIDES)
    expect(asked.err).to.contain('CONSENT_MISSING')
    expect(asked.out).to.contain('for MORE: connect to other.internal:6000')
    const accepted = await svc('plugins', 'accept', '--yes')
    expect(accepted.code, accepted.err).to.equal(0)
    expect(accepted.out).to.contain('may now   connect to other.internal:6000')
    expect((await svc('config', 'check')).code).to.equal(0)
    expect(JSON.parse((await svc('plugins', 'accept', '--json')).out)).to.deep.equal({ ok: true, plugins: [], servers: [] })
  })

  it('opens nothing for a value that the plugin itself has set as a default', async workspace => {
    const { svc, folder } = workspace
    expect((await svc('plugins', 'install', await tidesFile(folder, tides('1.0.0')), '--yes')).code).to.equal(0)
    const { code, err } = await svc('tools', 'call', 'tides')
    expect(code).to.equal(1)
    expect(err).to.match(/EACCES|not declared/)
  })

  it('is missing for a server of the configuration: the error offers its setting, on loopback too', async workspace => {
    const { svc, folder } = workspace
    const file = await tidesFile(folder, tides('1.0.0', { svc: { permissions: { env: ['TIDES_KEY'] } } }))
    expect((await svc('plugins', 'install', file, '--yes')).code).to.equal(0)
    for (const [url, code] of [
      ['tcp://127.0.0.1:9', 'ECONNREFUSED'],
      ['tcp://db.internal:5432', 'EACCES'],
    ] as const) {
      await configure(workspace, { url })
      const { err } = await svc('tools', 'call', 'tides')
      expect(err).to.contain(`connect ${code} ${url.slice(6)}`)
      expect(err).to.contain(`is not declared: add "svc": { "permissions": { "network": ["<tools.tides.url>"] } }`)
    }
  })

  it('covers one port: the error names the setting whose port the code does not use, and says when no server answers', async workspace => {
    const { svc, folder } = workspace
    await configure(workspace, { url: 'tcp://127.0.0.1:9' })
    expect((await svc('plugins', 'install', await tidesFile(folder, tides('1.0.0')), '--yes')).code).to.equal(0)
    expect((await svc('tools', 'call', 'tides', 'how=other')).err).to.contain(
      '127.0.0.1:10 is not declared: the setting tools.tides.url is 127.0.0.1:9. Connect to the port of the setting'
    )
    expect((await svc('tools', 'call', 'tides')).err).to.contain('ECONNREFUSED 127.0.0.1:9: no server answers at this port')
    expect((await svc('plugins', 'list')).out).to.contain('accepted  connect to 127.0.0.1:9')
  })

  it('holds for a reload: the workers with the accepted value go on serving', async workspace => {
    const { svc, folder, home } = workspace
    await configure(workspace, { url: 'tcp://a.internal:1' })
    expect((await svc('plugins', 'install', await tidesFile(folder, tides('1.0.0')), '--yes')).code).to.equal(0)
    await using service = await startService({ home, cwd: folder })
    await configure(workspace, { url: 'tcp://b.internal:1' })
    const reloaded = await svc('reload')
    expect(reloaded.code).to.equal(1)
    expect(reloaded.err).to.contain('PERMISSION_NOT_ACCEPTED').and.contain('b.internal:1')
    expect((await fetch(`${service.url}/health/live`)).status).to.equal(200)
    const shown = await svc('status')
    expect(shown.out, shown.err).to.match(
      /reload +failed .* ago; the former workers serve on\n +PERMISSION_NOT_ACCEPTED svc-plugin-tides/
    )
    expect(JSON.parse((await svc('status', '--json')).out)).to.have.nested.property('failed_reload.problems[0].plugin', TIDES)
    const accepted = await svc('plugins', 'accept', TIDES, '--yes')
    expect(accepted.out, accepted.err).to.contain(`${service.url} has loaded the change`)
    expect((await svc('status')).out).to.not.contain('former workers')
  })

  it('of a link whose folder is gone cannot be renewed, and says why', async workspace => {
    const { svc, folder } = workspace
    const from = await tidesFolder(folder, tides('1.0.0'))
    expect((await svc('plugins', 'link', from, '--yes')).code).to.equal(0)
    await rm(from, { recursive: true })
    const { code, err } = await svc('plugins', 'accept', '--yes')
    expect(code).to.equal(1)
    expect(err).to.contain(`PLUGIN_FILES_MISSING  ${TIDES}`)
  })

  it('rejects other files under an installed version, and takes the same files packed anew', async workspace => {
    const { svc, folder } = workspace
    const from = await tidesFolder(folder, tides('1.0.0'))
    expect((await svc('plugins', 'install', from, '--yes')).code).to.equal(0)
    expect((await svc('plugins', 'update', '--yes')).out).to.contain('all plugins are up to date')
    const before = await workspace.lock()
    await writeFile(join(from, 'index.js'), `${CODE}// changed\n`)
    for (const args of [['update'], ['install', from]]) {
      const { code, err } = await svc('plugins', ...args, '--yes')
      expect(code).to.equal(1)
      expect(err).to.contain(`PLUGIN_VERSION_REUSED  ${TIDES}`).and.contain('installed with other files: index.js')
    }
    expect(await workspace.lock()).to.equal(before)
    await writeFile(join(from, 'index.js'), CODE)
    const file = join(folder, 'repacked.tgz')
    await create({ file, cwd: from, gzip: { level: 1 }, prefix: 'other-folder' }, ['index.js', 'package.json'])
    const repacked = await svc('plugins', 'install', file, '--yes')
    expect(repacked.code, repacked.err).to.equal(0)
  })

  it('names a tarball that has moved: an update of it alone fails, an update of all leaves it as it is', async workspace => {
    const { svc, folder } = workspace
    const file = await tidesFile(folder, tides('1.0.0'))
    expect((await svc('plugins', 'install', file, '--yes')).code).to.equal(0)
    await rename(file, join(folder, 'elsewhere.tgz'))
    const alone = await svc('plugins', 'update', TIDES, '--yes')
    expect(alone.code).to.equal(1)
    expect(alone.err).to.contain(`PLUGIN_SOURCE_GONE  ${TIDES}`).and.contain('svc plugins install <path>')
    const every = await svc('plugins', 'update', '--yes')
    expect(every.code, every.err).to.equal(0)
    expect(every.err).to.contain(`note: ${TIDES} stays as it is, because the tarball`)
    const moved = await svc('plugins', 'install', join(folder, 'elsewhere.tgz'), '--yes')
    expect(moved.code, moved.err).to.equal(0)
    expect(JSON.parse(await workspace.lock()).plugins[0].origin.spec).to.equal(join(folder, 'elsewhere.tgz'))
  })

  it('recognises a bundle by its content, whatever its name is, and takes no consent from it', async workspace => {
    const { svc, folder } = workspace
    await configure(workspace, { url: 'tcp://a.internal:1' })
    expect((await svc('plugins', 'install', await tidesFile(folder, tides('1.0.0')), '--yes')).code).to.equal(0)
    expect((await svc('plugins', 'pack', 'plugins.tgz')).code).to.equal(0)
    const names = ['backup', 'plugins.bundle', 'svc-plugin-weather-1.0.0.zip']
    for (const name of names) {
      await copyFile(join(folder, 'plugins.tgz'), join(folder, name))
      await rm(join(workspace.home, 'svc-plugins.lock'))
      const { code, out, err } = await svc('plugins', 'install', `./${name}`, '--yes')
      expect(code, err).to.equal(0)
      expect(out).to.contain(`restored ${TIDES} 1.0.0`)
    }
    await configure(workspace, { url: 'tcp://b.internal:1' })
    const there = join(folder, 'there')
    const restored = await runSvc(['plugins', 'install', './backup', '--yes'], { home: there, cwd: folder })
    expect(restored.code, restored.err).to.equal(0)
    expect(await readFile(join(there, 'svc-plugins.lock'), 'utf8'))
      .to.contain('b.internal:1')
      .and.not.contain('a.internal')
    // in a folder of another author, a bundle could have the name of a package
    const taken = await svc('plugins', 'install', 'backup', '--yes')
    expect(taken.err).to.contain('COMMAND_LINE_INVALID').and.contain('./backup')
    await writeFile(join(folder, 'plain.tgz'), 'no archive')
    expect((await svc('plugins', 'install', './plain.tgz', '--yes')).err).to.contain('PLUGIN_TARBALL_UNSAFE')
  })

  it('shows its progress as plain lines without a terminal, a folder by name, and no variables that svc sets', async workspace => {
    const { svc, folder } = workspace
    const second = await tidesFile(folder, {
      version: '2.0.0',
      name: 'svc-plugin-second',
      svc: { contributes: {} },
      files: { 'index.js': "import { definePlugin } from '@svc/core'\nexport default definePlugin({ setup() {} })\n" },
    })
    const { code, out, err } = await svc('plugins', 'install', await tidesFile(folder, tides('1.0.0')), second, '--yes')
    expect(code, err).to.equal(0)
    for (const line of [
      '[1/2] fetching ',
      '[2/2] fetching ',
      'installing the packages',
      '[1/2] running once in its sandbox: ',
      'activating the change',
    ])
      expect(err).to.contain(line)
    expect(err).to.not.include('\u001b')
    expect(out).to.match(new RegExp(`note: of the variables that ${TIDES} can read, TIDES_KEY is not set here`))
    expect((await svc('plugins', 'install', '', '--yes')).err)
      .to.contain('PLUGIN_SPEC_INVALID')
      .and.contain('it is empty')
    expect((await svc('plugins', 'link', '', '--yes')).err).to.contain('PLUGIN_SPEC_INVALID')
    await mkdir(join(folder, 'here'))
    await writeFile(join(folder, 'package.json'), await readFile(join(await tidesFolder(folder, tides('3.0.0')), 'package.json')))
    await writeFile(join(folder, 'index.js'), '')
    const here = await svc('plugins', 'link', '.', '--dry-run')
    expect(here.out, here.err).to.contain('a link to the folder .\n')
  })

  it('asks nothing and downloads nothing for a plugin that is not built', async workspace => {
    const { svc, folder } = workspace
    const exports = { '.': { development: './src/index.ts', types: './dist/index.d.ts', default: './dist/index.js' } }
    const dependencies = { 'a-package-that-no-registry-has': '1.0.0' }
    const from = await tidesFolder(folder, tides('1.0.0'))
    const file = join(from, 'package.json')
    await writeFile(file, JSON.stringify({ ...(JSON.parse(await readFile(file, 'utf8')) as object), exports, dependencies }))
    for (const verb of ['install', 'link']) {
      const { code, out, err } = await svc('plugins', verb, from)
      expect([code, out]).to.deep.equal([1, ''])
      expect(err)
        .to.contain(`PLUGIN_IMPORT_FAILED  ${TIDES}`)
        .and.contain('dist/index.js, which does not exist')
        .and.contain('npm run build')
        .and.not.contain('CONSENT_MISSING')
    }
  })

  it('names settings that the configuration lacks before the question, with or without a running server', async workspace => {
    const { svc, folder, home } = workspace
    const settings = ['tools.tides.url', 'tools.tides.spare']
    const file = await tidesFile(folder, tides('1.0.0', { svc: { permissions: SETTINGS, settings } }))
    await configure(workspace, { url: 'tcp://db.internal:1' })
    const { code, out, err } = await svc('plugins', 'install', file)
    expect(code).to.equal(1)
    expect(out).to.contain('needs     tools.tides.spare in the configuration, which is not set')
    expect(err).to.contain(`SETTINGS_MISSING  ${TIDES}`).and.contain('needs tools.tides.spare, which').and.not.contain('CONSENT')
    await configureFew(folder, {})
    await using service = await startService({ home, cwd: folder })
    const refused = await svc('plugins', 'install', file)
    expect(refused.err)
      .to.contain(
        `needs tools.tides.url, tools.tides.spare, which the configuration of the server at ${service.url} does not have`
      )
      .and.contain('which the server reads')
      .and.not.contain('CONSENT')
    await configure(workspace, { url: 'tcp://db.internal:1', spare: 'x' })
    const asked = await svc('plugins', 'install', file)
    expect(asked.out).to.not.contain('which is not set')
    expect(asked.err).to.contain('CONSENT_MISSING')
  })

  it('takes the settings of the running server, from any folder, and names the file that has missing ones', async workspace => {
    const { folder, home } = workspace
    const settings = ['tools.tides.url']
    const file = await tidesFile(folder, tides('1.0.0', { svc: { permissions: SETTINGS, settings } }))
    const elsewhere = join(folder, 'elsewhere')
    await mkdir(elsewhere)
    const env = { TIDES_KEY: 'here' }
    const there = (...args: string[]) => runSvc(args, { home, cwd: elsewhere, env })
    await configureFew(elsewhere, { tools: { tides: { url: 'tcp://here.internal:1' } } })
    await configureFew(folder, {})
    await using service = await startService({ home, cwd: folder })
    await configure(workspace, { url: 'tcp://there.internal:1' })
    const named = await there('plugins', 'install', file, '--yes', '--config', 'svc.config.json')
    expect([named.code, named.out]).to.satisfy(([code, out]: [number, string]) => code === 1 && out.includes('here.internal:1'))
    expect(named.err)
      .to.contain('PERMISSION_NOT_ACCEPTED')
      .and.contain('without --config: svc then asks for the values of the server')
      .and.not.contain('svc plugins accept')
    const installed = await there('plugins', 'install', file, '--yes')
    expect(installed.code, installed.err).to.equal(0)
    expect(installed.out)
      .to.contain('connect to there.internal:1 (tools.tides.url)')
      .and.contain(`TIDES_KEY is not set in the server at ${service.url}`)
    await configure(workspace, { url: 'tcp://next.internal:1' })
    const accepted = await there('plugins', 'accept', TIDES, '--yes')
    expect(accepted.out, accepted.err).to.contain('connect to next.internal:1').and.contain('has loaded the change')
    const kept = await there('plugins', 'uninstall', TIDES)
    expect(kept.code).to.equal(1)
    expect(kept.err)
      .to.contain('CONFIG_UNKNOWN_KEY')
      .and.match(/Remove tools from \S*svc\.config\.json if it belongs to svc-plugin-tides/)
    await configureFew(folder, {})
    const gone = await there('plugins', 'uninstall', TIDES)
    expect(gone.code, gone.err).to.equal(0)
    const missing = await there('plugins', 'install', file, '--yes')
    expect(missing.err)
      .to.contain(`the configuration of the server at ${service.url} does not have: the server does not read`)
      .and.contain('svc.config.json, which has it')
  })

  it('leaves one line in the log for whatever a tool throws, which svc tools call shows with code and place', async workspace => {
    const { svc, folder, home } = workspace
    expect((await svc('plugins', 'install', await tidesFile(folder, tides('1.0.0')), '--yes')).code).to.equal(0)
    const coded = await svc('tools', 'call', 'tides', 'how=coded')
    expect(coded.code).to.equal(1)
    expect(coded.err)
      .to.contain(`TOOL_EXECUTION_FAILED  ${TIDES}`)
      .and.contain('(TIDE_LOST)')
      .and.match(/\n {2}at .*index\.js:\d+/)
      .and.match(/\n {2}at .*[( ]svc-plugin-tides\/index\.js:\d+/)
      .and.contain('Of the variables of the plugin, TIDES_KEY is not set here. If the plugin needs it, export it')
    expect((await svc('tools', 'call', 'tides', 'how=type')).err).to.contain('(TypeError)')
    expect((await svc('tools', 'call', 'tides', 'how=text')).err)
      .to.contain('only words')
      .and.not.contain('INTERNAL_ERROR')
    await using service = await startService({ home, cwd: folder })
    const call = (how: string) =>
      fetch(`${service.url}/api/v1/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ provider: 'local', message: `/tool tides {"how": "${how}"}` }),
      }).then(answer => answer.text())
    for (const how of ['coded', 'type', 'text', 'getter']) expect(await call(how)).to.not.match(/index\.js|\n +at /)
    await service.seen(/threw an error/, 4)
    const lines = service
      .output()
      .split('\n')
      .filter(line => line.includes('threw an error'))
      .map(line => JSON.parse(line) as { of: string; tool: string; code: string; err: { stack: string } })
    expect(lines.map(({ of, tool, code }) => [of, tool, code])).to.deep.equal([
      [TIDES, 'tides', 'TIDE_LOST'],
      [TIDES, 'tides', 'TypeError'],
      [TIDES, 'tides', 'INTERNAL_ERROR'],
      [TIDES, 'tides', 'INTERNAL_ERROR'],
    ])
    for (const { err } of lines.slice(0, 2))
      expect(err.stack)
        .to.match(/index\.js:\d+/)
        .and.not.contain('s3cret')
  })
})
