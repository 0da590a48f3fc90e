import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { configureFew, TIDES, tidesFolder } from '../../../../test/support/tides.ts'
import { makeWorkspace, type Workspace } from '../../../../cli/test/support/svc.ts'
import { terminal } from '../../../../cli/test/support/terminal.ts'
import { itWith, lacking, skipBecause } from '../../../../test/support/needs.ts'

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
