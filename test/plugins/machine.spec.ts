import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { inWorkspace, setOf } from '../support/plugin-workspace.ts'
import { sideBySideIn } from '../support/side-by-side.ts'
import { configureFew, TIDES, tidesFile } from '../support/tides.ts'
import { itWith } from '../support/needs.ts'

describe('installed plugins', function () {
  this.timeout(120_000)
  const it = sideBySideIn(inWorkspace)

  it('are rejected with a hint on a machine without a working sandbox, unless the configuration allows them', async workspace => {
    const { folder, home } = workspace
    const bin = join(folder, 'bin')
    await mkdir(bin)
    await writeFile(join(bin, 'bwrap'), '#!/bin/sh\n[ "$1" = --version ] && exit\necho "no namespaces here" >&2; exit 1\n', {
      mode: 0o755,
    })
    const from = await tidesFile(folder, { version: '1.0.0' })
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder, npm_config_cache: join(folder, 'cache') }
    const svc = (...args: string[]) => runSvc(args, { home, cwd: folder, env })
    const refused = await svc('plugins', 'install', from, '--yes')
    expect(refused.code).to.equal(1)
    expect(refused.err).to.contain('ISOLATION_UNAVAILABLE').and.contain('run-with-open-network-and-unlimited-memory')
    expect(await readdir(home)).to.not.include('svc-plugins.lock')
    await configureFew(folder, { isolation: { without_sandbox: 'run-with-open-network-and-unlimited-memory' } })
    const weak = await svc('plugins', 'install', from, '--yes')
    expect(weak.code, weak.err).to.equal(0)
    expect(weak.out).to.contain('NETWORK IS OPEN')
    expect((await svc('tools', 'call', 'tides')).out).to.contain('the tides of 1.0.0')
  })

  itWith('bubblewrap', it)('are not switched on where a file of them has changed meanwhile', async workspace => {
    const { svc, folder } = workspace
    expect((await svc('plugins', 'install', await tidesFile(folder, { version: '1.0.0' }), '--yes')).code).to.equal(0)
    expect((await svc('plugins', 'disable', TIDES)).code).to.equal(0)
    const before = await workspace.lock()
    await writeFile(join(await setOf(workspace), 'node_modules', TIDES, 'index.js'), 'export default { setup() {} }\n')
    const { code, err } = await svc('plugins', 'enable', TIDES)
    expect(code).to.equal(1)
    expect(err).to.contain(`PLUGIN_CHANGED  ${TIDES}`)
    expect(await workspace.lock()).to.equal(before)
  })

  it('with the runtime quickjs run in the JavaScript sandbox without --isolation and without trust', async workspace => {
    const { svc, folder } = workspace
    await configureFew(folder, { host: { setup_timeout_ms: 60_000 } }, ['sandbox-quickjs'])
    const tool = `{ description: 'x', effects: [], parameters: { type: 'object' }, call: () => typeof process + ' tides' }`
    const files = { 'index.js': `export const tools = { tides: ${tool} }\n` }
    const from = await tidesFile(folder, { version: '1.0.0', svc: { runtime: 'quickjs' }, files })
    const { code, out, err } = await svc('plugins', 'install', from, '--yes')
    expect(code, err).to.equal(0)
    expect(out).to.match(/^ {2}runs +.*JavaScript/m)
    expect((JSON.parse(await workspace.lock()) as { plugins: object[] }).plugins[0]).to.include({
      isolation: 'quickjs',
      trusted: false,
    })
    expect((await svc('tools', 'call', 'tides')).out).to.equal('undefined tides\n')
  })
})
