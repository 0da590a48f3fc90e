import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, lchown, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { noBubblewrap } from '@svc/core/testing'
import { expect } from 'chai'
import { hasTerminal, terminal } from '../../cli/test/support/terminal.ts'
import { runSvc } from '../support/command.ts'
import { SVC } from '../support/entry.ts'
import { startService } from '../support/service.ts'

const STRANGER = 12_345
const isRoot = process.getuid?.() === 0

/** The first line of what a command printed on the error stream. */
const codeIn = ({ err }: { readonly err: string }) => err.split(/\s/, 1)[0]

describe('configuration that others may have written', () => {
  let base: string
  let home: string
  let project: string
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'svc-trust-'))
    home = join(base, 'home')
    project = join(base, 'shared/mine')
    await mkdir(project, { recursive: true })
    await mkdir(home, { mode: 0o700 })
  })
  afterEach(() => rm(base, { recursive: true, force: true }))

  const marker = () => join(base, 'executed')
  const code = (more = '') => `${more}import { writeFileSync } from 'node:fs'
writeFileSync(${JSON.stringify(marker())}, '')
export default { chat: { message_limit: 7 } }
`
  async function write(name: string, text: string): Promise<string> {
    const file = join(base, name)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
    return file
  }
  const svc = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    runSvc(args, { home, cwd: project, env, share: true })
  const limit = async (env = {}) => svc(['config', 'show', 'chat.message_limit', '--json'], env)

  it('is refused with its owner when another user owns it, and executes at no command', async function () {
    if (!isRoot) return this.skip() // only root can give a file to another user
    const file = await write('shared/svc.config.mts', code())
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
    const ends = await Promise.all(lines.map(args => svc(args)))
    expect(existsSync(marker())).to.equal(false)
    expect(ends.map(one => one.code)).to.deep.equal([0, 0, 0, 2, 2, 1, 1])
    expect(ends.at(-1)!.err).to.contain('CONFIG_FOREIGN').and.contain(`uid ${STRANGER}`).and.contain('--config')
  })

  it('is refused as YAML, too', async function () {
    if (!isRoot) return this.skip() // only root can give a file to another user
    await chown(await write('shared/svc.config.yaml', 'chat: { message_limit: 7 }\n'), STRANGER, STRANGER)
    const shown = await limit()
    expect(shown.code).to.equal(1)
    expect(codeIn(shown)).to.equal('CONFIG_FOREIGN')
    expect(shown.out).to.not.contain('"value": 7')
  })

  const YAML = 'chat: { message_limit: 7 }\n'
  const WRITABLE: Readonly<Record<string, () => Promise<unknown>>> = {
    'the file is writable for all': async () => chmod(await write('shared/svc.config.yaml', YAML), 0o666),
    'its folder is writable for all': async () => {
      await write('shared/svc.config.yaml', YAML)
      await chmod(join(base, 'shared'), 0o777)
    },
    'the target of a link is writable for all': async () => {
      await chmod(await write('else/real.yaml', YAML), 0o646)
      await symlink('../else/real.yaml', join(base, 'shared/svc.config.yaml'))
    },
    'the folder of the target of a link is writable for all': async () => {
      await write('else/real.yaml', YAML)
      await chmod(join(base, 'else'), 0o777)
      await symlink('../else/real.yaml', join(base, 'shared/svc.config.yaml'))
    },
    'a module that it imports is writable for all': async () => {
      await write('shared/svc.config.mts', code("import './parts/more.mts'\n"))
      await chmod(await write('shared/parts/more.mts', code()), 0o666)
    },
    'it is the file of the svc home': async () => chmod(await write('home/svc.config.yaml', YAML), 0o666),
  }
  for (const [what, plant] of Object.entries(WRITABLE))
    it(`is refused where ${what}`, async () => {
      await plant()
      const shown = await limit({ SVC_TRUST_CONFIG: '1' })
      expect(shown.code).to.equal(1)
      expect(codeIn(shown)).to.equal('CONFIG_FOREIGN')
      expect(existsSync(marker())).to.equal(false)
    })

  const FOREIGN: Readonly<Record<string, () => Promise<unknown>>> = {
    'another group can write it': async () => {
      const file = await write('shared/svc.config.yaml', YAML)
      await chown(file, 0, STRANGER)
      await chmod(file, 0o664)
    },
    'the link to it belongs to another user': async () => {
      await write('else/real.yaml', YAML)
      await symlink('../else/real.yaml', join(base, 'shared/svc.config.yaml'))
      await lchown(join(base, 'shared/svc.config.yaml'), STRANGER, STRANGER)
    },
    'its folder belongs to another user': async () => {
      await write('shared/svc.config.yaml', YAML)
      await chown(join(base, 'shared'), STRANGER, STRANGER)
    },
  }
  for (const [what, plant] of Object.entries(FOREIGN))
    it(`is refused where ${what}`, async function () {
      if (!isRoot) return this.skip() // only root can give a file to another user
      await plant()
      expect(codeIn(await limit())).to.equal('CONFIG_FOREIGN')
    })

  it('is taken where only the user can have written it: own group, a folder like /tmp', async () => {
    await chmod(await write('shared/svc.config.yaml', YAML), 0o664)
    await chmod(join(base, 'shared'), 0o1777)
    const shown = await limit()
    expect(shown).to.include({ code: 0, err: '' })
    expect(shown.out).to.contain('"value": 7')
  })

  it('does not hang on a pipe in place of a file', async () => {
    expect(spawnSync('mkfifo', [join(base, 'shared/svc.config.yaml')]).status).to.equal(0)
    expect(codeIn(await limit())).to.equal('CONFIG_UNREADABLE')
  })

  it('is not searched above the root of a repository, nor above the home folder of the user', async () => {
    await write('svc.config.yaml', YAML)
    await write('shared/.git', 'gitdir: elsewhere\n')
    expect((await limit()).out).to.not.contain('"value": 7')
    await rm(join(base, 'shared/.git'))
    expect((await limit({ HOME: join(base, 'shared') })).out).to.not.contain('"value": 7')
    expect((await limit()).out).to.contain('"value": 7')
    await write('shared/.git', 'gitdir: elsewhere\n')
    await write('shared/svc.config.yaml', 'chat: { message_limit: 8 }\n')
    expect((await limit()).out).to.contain('"value": 8')
  })

  it('is not searched above a mount point', async function () {
    if (noBubblewrap() !== undefined) return this.skip() // it makes the mount
    await write('svc.config.yaml', YAML)
    const mounted = join(base, 'shared')
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
        project,
        '--chdir',
        project,
        '--',
        process.execPath,
        ...SVC,
      ].concat(['config', 'show', 'chat.message_limit', '--json']),
      { env: { PATH: process.env.PATH, SVC_HOME: home }, encoding: 'utf8' }
    )
    expect(inMount.status).to.equal(0)
    expect(inMount.stdout).to.not.contain('"value": 7')
    expect((await limit()).out).to.contain('"value": 7')
  })

  describe('in code, of the user', () => {
    it('does not run without a terminal, and says what allows it', async () => {
      const file = await write('shared/svc.config.mts', code())
      const shown = await limit()
      expect(shown.code).to.equal(1)
      expect(shown.err)
        .to.match(/^CONFIG_NOT_TRUSTED\n/)
        .and.contain('svc.config.mts')
        .and.contain('SVC_TRUST_CONFIG=1')
        .and.contain('--config')
      expect((await svc(['serve', '--port', '0'])).err).to.contain('CONFIG_NOT_TRUSTED')
      expect(existsSync(marker())).to.equal(false)
      for (const [args, env] of [
        [['-c', file], {}],
        [[], { SVC_TRUST_CONFIG: '1' }],
      ] as const)
        expect((await svc(['config', 'show', 'chat.message_limit', '--json', ...args], env)).out).to.contain('"value": 7')
      await rm(file)
      await write('home/svc.config.mts', code())
      expect((await limit()).out).to.contain('"value": 7')
    })

    it('runs on a terminal after one question, and asks again when it or what it imports has changed', async function () {
      if (!hasTerminal()) return this.skip() // util-linux' script makes the terminal
      await write('shared/svc.config.mts', code("import './more.mts'\n"))
      await write('shared/more.mts', 'export {}\n')
      const place = { home, folder: project }
      const ask = async (answer: string, words = 'svc.config.mts is code: ') => {
        const tty = await terminal(place, ['config', 'check'])
        await tty.sees(words)
        await tty.sees('[y/N]')
        tty.type(`${answer}\r`)
        return tty.code()
      }
      expect(await ask('n')).to.equal(1)
      expect(existsSync(marker())).to.equal(false)
      expect(await ask('y')).to.equal(0)
      expect(existsSync(marker())).to.equal(true)
      const [entry = ''] = await readdir(join(home, 'trusted-config'))
      expect((await stat(join(home, 'trusted-config', entry))).mode & 0o777).to.equal(0o600)
      const unasked = await terminal(place, ['config', 'check'])
      expect(await unasked.code()).to.equal(0)
      expect(unasked.seen()).to.not.contain('[y/N]')
      expect(await limit()).to.include({ code: 0 })
      await write('shared/more.mts', 'export const changed = true\n')
      expect(codeIn(await limit())).to.equal('CONFIG_NOT_TRUSTED')
      expect(await ask('y', 'has changed since you allowed it')).to.equal(0)
    })

    it('that has changed is not taken by a reload: the server goes on with the former one', async function () {
      if (!hasTerminal()) return this.skip() // util-linux' script makes the terminal
      await write('shared/svc.config.mts', 'export default { chat: { message_limit: 10 } }\n')
      const tty = await terminal({ home, folder: project }, ['config', 'check'])
      await tty.sees('[y/N]')
      tty.type('y\r')
      expect(await tty.code()).to.equal(0)
      await using server = await startService({ home, cwd: project })
      await write('shared/svc.config.mts', code())
      const { code: ended, err } = await svc(['reload'])
      expect(ended).to.equal(1)
      expect(err).to.contain('CONFIG_NOT_TRUSTED')
      expect(existsSync(marker())).to.equal(false)
      expect((await fetch(`${server.url}/health/live`)).status).to.equal(200)
    })
  })
})
