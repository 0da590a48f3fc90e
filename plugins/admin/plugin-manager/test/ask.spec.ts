import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { configureFew, TIDES, tidesFolder } from '../../../../test/support/tides.ts'
import { makeWorkspace, type Workspace } from '../../../../cli/test/support/svc.ts'
import { terminal } from '../../../../cli/test/support/terminal.ts'
import { itWith, lacking, skipBecause } from '../../../../test/support/needs.ts'

const CONFIGURED = `import { definePlugin, schema } from '@svc/core'
import { Tools } from '@svc/core/contracts'
export default definePlugin({
  section: 'tools.tides',
  config: schema({ type: 'object', properties: { url: { type: 'string', description: 'Where' } } }),
  setup: scope => void scope.add(Tools, 'tides', { description: 'Tells the tides', category: 'time', effects: [], parameters: { type: 'object' }, call: async () => ({ content: [] }) }),
})
`

describe('svc serve on a terminal', function () {
  this.timeout(120_000)
  let workspace: Workspace
  const configure = (url: string) => configureFew(workspace.folder, { tools: { tides: { url } } })
  const serve = () => terminal(workspace, ['serve', '--port', '0'])
  before(async function () {
    skipBecause(this, lacking('terminal') ?? lacking('bubblewrap'))
    workspace = await makeWorkspace()
    await configure('tcp://a.internal:1')
    const svc = { permissions: { network: ['<tools.tides.url>'] } }
    const from = await tidesFolder(workspace.folder, { version: '1.0.0', svc, files: { 'index.js': CONFIGURED } })
    const installed = await workspace.svc(['plugins', 'install', from, '--yes'])
    expect(installed.code, installed.err).to.equal(0)
    await configure('tcp://b.internal:1')
  })
  after(() => workspace?.[Symbol.asyncDispose]())
  const it = itWith('bubblewrap', global.it)

  it('asks for the consent that a plugin lacks; any answer but yes ends it with the report', async () => {
    const tty = await serve()
    await tty.sees('Accept? [y/N]', await tty.sees('connect to b.internal:1'))
    tty.type('\r')
    await tty.sees('PERMISSION_NOT_ACCEPTED', await tty.sees('nothing was changed'))
    expect(await tty.code()).to.equal(1)
    const stopped = await serve()
    await stopped.sees('Accept? [y/N]')
    stopped.type('\u0003')
    expect(await stopped.code()).to.equal(130)
  })

  it('does not ask when consent alone would not help, or JSON lines are wanted', async () => {
    const json = await terminal(workspace, ['serve', '--port', '0', '--json'])
    await json.sees('PERMISSION_NOT_ACCEPTED')
    expect(await json.code()).to.equal(1)
    await configureFew(workspace.folder, { tools: { tides: { url: 'tcp://b.internal:1' } }, chat: { unknown: 1 } })
    const broken = await serve()
    expect(await broken.code()).to.equal(1)
    for (const tty of [json, broken]) expect(tty.seen()).to.not.contain('Accept?')
  })

  it('serves after a yes', async () => {
    await configure('tcp://b.internal:1')
    const tty = await serve()
    await tty.sees('Accept? [y/N]')
    tty.type('y\r')
    await tty.sees('press Ctrl-C to stop', await tty.sees('accepted for'))
    tty.type('\u0003')
    expect(await tty.code()).to.equal(0)
    const again = await serve()
    await again.sees('press Ctrl-C to stop')
    expect(again.seen()).to.not.contain('Accept?')
    again.type('\u0003')
    expect(await again.code()).to.equal(0)
  })
})

describe('svc plugins install on a terminal', function () {
  this.timeout(60_000)
  let workspace: Workspace
  let from: string
  before(async function () {
    skipBecause(this, lacking('terminal'))
    workspace = await makeWorkspace()
    await configureFew(workspace.folder)
    from = await tidesFolder(workspace.folder, { version: '1.0.0', svc: { permissions: { network: ['moon.example'] } } })
  })
  after(() => workspace?.[Symbol.asyncDispose]())

  const install = () => terminal(workspace, ['plugins', 'install', from])
  const nothing = () =>
    expect(existsSync(join(workspace.home, 'svc-plugins.lock')) || existsSync(join(workspace.home, 'plugins'))).to.equal(false)

  it('shows what is under way and what the plugin asks for; any answer but yes is a no', async () => {
    const tty = await install()
    const shown = await tty.sees('connect to moon.example')
    await tty.sees(`Install ${TIDES} 1.0.0? [y/N]`, shown)
    tty.type('\r')
    await tty.sees('nothing was changed')
    expect(await tty.code()).to.equal(1)
    expect(tty.seen()).to.contain('fetching').and.contain('inspecting')
    nothing()
  })

  it('changes nothing at Ctrl-C, at the question and before, and ends with 130', async () => {
    const asking = await install()
    await asking.sees('[y/N]')
    asking.type('\u0003')
    await asking.sees('nothing was changed')
    expect(await asking.code()).to.equal(130)
    const fetching = await install()
    await fetching.sees('fetching')
    fetching.type('\u0003')
    await fetching.sees('nothing was changed')
    expect(await fetching.code()).to.equal(130)
    nothing()
  })

  itWith('bubblewrap', it)('changes nothing at Ctrl-C while it is put together, and puts it in force after a yes', async () => {
    const stopped = await install()
    await stopped.sees('[y/N]')
    stopped.type('y\r')
    await stopped.sees('installing the packages')
    stopped.type('\u0003')
    await stopped.sees('nothing was changed')
    expect(await stopped.code()).to.equal(130)
    nothing()
    const tty = await install()
    await tty.sees('[y/N]')
    tty.type('yes\r')
    await tty.sees(`installed ${TIDES} 1.0.0; no server runs`)
    expect(await tty.code()).to.equal(0)
    expect(JSON.parse(await readFile(join(workspace.home, 'svc-plugins.lock'), 'utf8')).plugins[0]).to.include({
      name: TIDES,
      isolation: 'process',
      trusted: false,
    })
  })
})
