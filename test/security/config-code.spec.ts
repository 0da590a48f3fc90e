import { existsSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { terminal } from '../../cli/test/support/terminal.ts'
import { startService } from '../support/service.ts'
import { codeIn, openSharedFolder, type SharedFolder } from '../support/shared-folder.ts'
import { lacking, skipBecause } from '../support/needs.ts'

describe('configuration in code, of the user', () => {
  let place: SharedFolder
  beforeEach(async () => {
    place = await openSharedFolder()
  })
  afterEach(() => place[Symbol.asyncDispose]())

  it('does not run without a terminal, and says what allows it', async () => {
    const file = await place.write('shared/svc.config.mts', place.code())
    const shown = await place.limit()
    expect(shown.code).to.equal(1)
    expect(shown.err)
      .to.match(/^CONFIG_NOT_TRUSTED\n/)
      .and.contain('svc.config.mts')
      .and.contain('SVC_TRUST_CONFIG=1')
      .and.contain('--config')
    expect((await place.svc(['serve', '--port', '0'])).err).to.contain('CONFIG_NOT_TRUSTED')
    expect(existsSync(place.marker)).to.equal(false)
    for (const [args, env] of [
      [['-c', file], {}],
      [[], { SVC_TRUST_CONFIG: '1' }],
    ] as const)
      expect((await place.svc(['config', 'show', 'chat.message_limit', '--json', ...args], env)).out).to.contain('"value": 7')
    await rm(file)
    await place.write('home/svc.config.mts', place.code())
    expect((await place.limit()).out).to.contain('"value": 7')
  })

  it('runs on a terminal after one question, and asks again when it or what it imports has changed', async function () {
    skipBecause(this, lacking('terminal'))
    await place.write('shared/svc.config.mts', place.code("import './more.mts'\n"))
    await place.write('shared/more.mts', 'export {}\n')
    const folders = { home: place.home, folder: place.project }
    const ask = async (answer: string, words = 'svc.config.mts is code: ') => {
      const tty = await terminal(folders, ['config', 'check'])
      await tty.sees(words)
      await tty.sees('[y/N]')
      tty.type(`${answer}\r`)
      return tty.code()
    }
    expect(await ask('n')).to.equal(1)
    expect(existsSync(place.marker)).to.equal(false)
    expect(await ask('y')).to.equal(0)
    expect(existsSync(place.marker)).to.equal(true)
    const [entry = ''] = await readdir(join(place.home, 'trusted-config'))
    expect((await stat(join(place.home, 'trusted-config', entry))).mode & 0o777).to.equal(0o600)
    const unasked = await terminal(folders, ['config', 'check'])
    expect(await unasked.code()).to.equal(0)
    expect(unasked.seen()).to.not.contain('[y/N]')
    expect(await place.limit()).to.include({ code: 0 })
    await place.write('shared/more.mts', 'export const changed = true\n')
    expect(codeIn(await place.limit())).to.equal('CONFIG_NOT_TRUSTED')
    expect(await ask('y', 'has changed since you allowed it')).to.equal(0)
  })

  it('that has changed is not taken by a reload: the server goes on with the former one', async function () {
    skipBecause(this, lacking('terminal'))
    await place.write('shared/svc.config.mts', 'export default { chat: { message_limit: 10 } }\n')
    const tty = await terminal({ home: place.home, folder: place.project }, ['config', 'check'])
    await tty.sees('[y/N]')
    tty.type('y\r')
    expect(await tty.code()).to.equal(0)
    await using server = await startService({ home: place.home, cwd: place.project })
    await place.write('shared/svc.config.mts', place.code())
    const { code: ended, err } = await place.svc(['reload'])
    expect(ended).to.equal(1)
    expect(err).to.contain('CONFIG_NOT_TRUSTED')
    expect(existsSync(place.marker)).to.equal(false)
    expect((await fetch(`${server.url}/health/live`)).status).to.equal(200)
  })
})
