import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, lchown, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { SVC } from '../support/entry.ts'
import { codeIn, openSharedFolder, type SharedFolder } from '../support/shared-folder.ts'
import { lacking, skipBecause } from '../support/needs.ts'

const STRANGER = 12_345

describe('configuration that others may have written', () => {
  let place: SharedFolder
  beforeEach(async () => {
    place = await openSharedFolder()
  })
  afterEach(() => place[Symbol.asyncDispose]())

  it('is refused with its owner when another user owns it, and executes at no command', async function () {
    skipBecause(this, lacking('root'))
    const file = await place.write('shared/svc.config.mts', place.code())
    await chown(file, STRANGER, STRANGER)
    const lines = [
      ['--version'],
      ['--help'],
      ['serve', '--help'],
      ['strange', '--help'],
      ['strange'],
      ['chat', 'hello'],
      ['serve'],
    ]
    const ends = await Promise.all(lines.map(args => place.svc(args)))
    expect(existsSync(place.marker)).to.equal(false)
    expect(ends.map(end => end.code)).to.deep.equal([0, 0, 0, 2, 2, 1, 1])
    expect(ends.at(-1)!.err).to.contain('CONFIG_FOREIGN').and.contain(`uid ${STRANGER}`).and.contain('--config')
  })

  it('is refused as YAML, too', async function () {
    skipBecause(this, lacking('root'))
    await chown(await place.write('shared/svc.config.yaml', 'chat: { message_limit: 7 }\n'), STRANGER, STRANGER)
    const shown = await place.limit()
    expect(shown.code).to.equal(1)
    expect(codeIn(shown)).to.equal('CONFIG_FOREIGN')
    expect(shown.out).to.not.contain('"value": 7')
  })

  const YAML = 'chat: { message_limit: 7 }\n'
  const WRITABLE: Readonly<Record<string, () => Promise<unknown>>> = {
    'the file is writable for all': async () => chmod(await place.write('shared/svc.config.yaml', YAML), 0o666),
    'its folder is writable for all': async () => {
      await place.write('shared/svc.config.yaml', YAML)
      await chmod(join(place.base, 'shared'), 0o777)
    },
    'the target of a link is writable for all': async () => {
      await chmod(await place.write('else/real.yaml', YAML), 0o646)
      await symlink('../else/real.yaml', join(place.base, 'shared/svc.config.yaml'))
    },
    'the folder of the target of a link is writable for all': async () => {
      await place.write('else/real.yaml', YAML)
      await chmod(join(place.base, 'else'), 0o777)
      await symlink('../else/real.yaml', join(place.base, 'shared/svc.config.yaml'))
    },
    'a module that it imports is writable for all': async () => {
      await place.write('shared/svc.config.mts', place.code("import './parts/more.mts'\n"))
      await chmod(await place.write('shared/parts/more.mts', place.code()), 0o666)
    },
    'it is the file of the svc home': async () => chmod(await place.write('home/svc.config.yaml', YAML), 0o666),
  }
  for (const [what, plant] of Object.entries(WRITABLE))
    it(`is refused where ${what}`, async () => {
      await plant()
      const shown = await place.limit({ SVC_TRUST_CONFIG: '1' })
      expect(shown.code).to.equal(1)
      expect(codeIn(shown)).to.equal('CONFIG_FOREIGN')
      expect(existsSync(place.marker)).to.equal(false)
    })

  const FOREIGN: Readonly<Record<string, () => Promise<unknown>>> = {
    'another group can write it': async () => {
      const file = await place.write('shared/svc.config.yaml', YAML)
      await chown(file, 0, STRANGER)
      await chmod(file, 0o664)
    },
    'the link to it belongs to another user': async () => {
      await place.write('else/real.yaml', YAML)
      await symlink('../else/real.yaml', join(place.base, 'shared/svc.config.yaml'))
      await lchown(join(place.base, 'shared/svc.config.yaml'), STRANGER, STRANGER)
    },
    'its folder belongs to another user': async () => {
      await place.write('shared/svc.config.yaml', YAML)
      await chown(join(place.base, 'shared'), STRANGER, STRANGER)
    },
  }
  for (const [what, plant] of Object.entries(FOREIGN))
    it(`is refused where ${what}`, async function () {
      skipBecause(this, lacking('root'))
      await plant()
      expect(codeIn(await place.limit())).to.equal('CONFIG_FOREIGN')
    })

  it('is taken where only the user can have written it: own group, a folder like /tmp', async () => {
    await chmod(await place.write('shared/svc.config.yaml', YAML), 0o664)
    await chmod(join(place.base, 'shared'), 0o1777)
    const shown = await place.limit()
    expect(shown).to.include({ code: 0, err: '' })
    expect(shown.out).to.contain('"value": 7')
  })

  it('does not hang on a pipe in place of a file', async () => {
    expect(spawnSync('mkfifo', [join(place.base, 'shared/svc.config.yaml')]).status).to.equal(0)
    expect(codeIn(await place.limit())).to.equal('CONFIG_UNREADABLE')
  })

  it('is not searched above the root of a repository, nor above the home folder of the user', async () => {
    await place.write('svc.config.yaml', YAML)
    await place.write('shared/.git', 'gitdir: elsewhere\n')
    expect((await place.limit()).out).to.not.contain('"value": 7')
    await rm(join(place.base, 'shared/.git'))
    expect((await place.limit({ HOME: join(place.base, 'shared') })).out).to.not.contain('"value": 7')
    expect((await place.limit()).out).to.contain('"value": 7')
    await place.write('shared/.git', 'gitdir: elsewhere\n')
    await place.write('shared/svc.config.yaml', 'chat: { message_limit: 8 }\n')
    expect((await place.limit()).out).to.contain('"value": 8')
  })

  it('is not searched above a mount point', async function () {
    skipBecause(this, lacking('bubblewrap'))
    await place.write('svc.config.yaml', YAML)
    const mounted = join(place.base, 'shared')
    const inMount = spawnSync(
      'bwrap',
      [
        '--bind',
        '/',
        '/',
        '--proc',
        '/proc',
        '--tmpfs',
        mounted,
        '--dir',
        place.project,
        '--chdir',
        place.project,
        '--',
        process.execPath,
        ...SVC,
      ].concat(['config', 'show', 'chat.message_limit', '--json']),
      { env: { PATH: process.env.PATH, SVC_HOME: place.home }, encoding: 'utf8' }
    )
    expect(inMount.status).to.equal(0)
    expect(inMount.stdout).to.not.contain('"value": 7')
    expect((await place.limit()).out).to.contain('"value": 7')
  })

  it('takes no plugin by name from a folder above that others can write', async () => {
    await place.write('shared/mine/svc.config.yaml', 'plugins: [svc-plugin-planted]\n')
    const svc = { api: 1, kind: 'tool', contributes: { tools: ['planted'] } }
    const planted = { name: 'svc-plugin-planted', version: '1.0.0', type: 'module', main: 'index.js', svc }
    const file = await place.write('shared/node_modules/svc-plugin-planted/package.json', JSON.stringify(planted))
    await place.write('shared/node_modules/svc-plugin-planted/index.js', `${place.code()}export const setup = 1\n`)
    await chmod(dirname(file), 0o777)
    expect((await runSvc(['config', 'check'], { home: place.home, cwd: place.project })).err).to.contain('PLUGIN_UNKNOWN')
    expect(existsSync(place.marker)).to.equal(false)
    await chmod(dirname(file), 0o755)
    await runSvc(['config', 'check'], { home: place.home, cwd: place.project })
    expect(existsSync(place.marker)).to.equal(true)
  })
})
