import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { lintPlugin } from '../../plugins/admin/plugin-manager/src/commands/author/lint.ts'
import { newPlugin } from '../../plugins/admin/plugin-manager/src/commands/author/new-plugin.ts'
import { KINDS } from '../../plugins/admin/plugin-manager/src/commands/author/several-kinds.ts'
import { CONDITIONS, FRUGAL, SOURCE_TYPES } from '../support/entry.ts'

/** Packages of one kind, and of several. */
const PACKAGES = [...KINDS, 'tool+routes', 'auth+tool+hook', 'tool+node+auth+routes+service+hook+check+command', 'command+hook']

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

/** What the made packages are checked with: the tsconfig that each of them has, for all of them at once. */
const TSCONFIG = { ...SOURCE_TYPES, checkJs: true }

describe('svc plugins new', function () {
  this.timeout(300_000)
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-new-'))
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    for (const kind of PACKAGES)
      for (const js of [false, true])
        await newPlugin({
          name: kind.includes('+') ? 'svc-plugin-multi' : `@me/svc-plugin-two-words-${kind}`,
          kinds: kind.split('+') as (typeof KINDS)[number][],
          js,
          dir: join(folder, `${kind}-${js ? 'js' : 'ts'}`),
        })
    const { compilerOptions } = JSON.parse(await readFile(join(folder, 'tool-ts/tsconfig.json'), 'utf8')) as {
      compilerOptions: object
    }
    const whole = { compilerOptions: { ...compilerOptions, ...TSCONFIG }, include: ['*/src', '*/test'] }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(whole))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('makes packages of every kind whose types are right, in TypeScript and in JavaScript', async () => {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const env = { ...process.env, ...FRUGAL }
    const out = await run(process.execPath, [tsc, '-p', '.', '--pretty', 'false', '--listFiles'], { cwd: folder, env }).then(
      item => item.stdout,
      (error: { stdout: string }) => error.stdout
    )
    for (const kind of PACKAGES)
      expect(out, kind).to.match(new RegExp(`/${kind.replaceAll('+', '\\+')}-js/test/samples\\.js$`, 'm'))
    // what lies outside is our own source, which has its own check
    expect(out.split('\n').filter(line => /^[^.\s].*: error TS|^error TS/.test(line))).to.deep.equal([])
  })

  it('makes packages whose own tests and kits pass at once', async () => {
    const files = (await Promise.all((await readdir(folder)).map(async item => testsIn(join(folder, item))))).flat()
    expect(files.length).to.be.greaterThan(PACKAGES.length * 2)
    const args = [...CONDITIONS, '--test', '--test-isolation=none', '--test-reporter=tap', ...files]
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'NODE_TEST_CONTEXT'))
    const { stdout } = await run(process.execPath, args, { cwd: folder, env, maxBuffer: 1 << 26 }).catch(
      (error: { stdout: string }) => error
    )
    expect(stdout.split('\n').filter(line => line.startsWith('not ok'))).to.deep.equal([])
    expect(stdout)
      .to.match(/^# fail 0$/m)
      .and.to.match(/^# pass [3-9]\d\d$/m)
  })

  it('makes packages whose tests fail under a Node that cannot run them, and say why', async () => {
    const old = join(folder, 'old.cjs')
    await writeFile(old, "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } })")
    const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`
    for (const kind of ['tool-ts', 'tool-js', 'vertical-ts']) {
      const file = JSON.parse(await readFile(join(folder, kind, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
      const check = (more: object) =>
        run('sh', ['-c', file.scripts.pretest!], { env: { ...process.env, PATH, ...more } }).then(
          () => '',
          (error: { stderr: string }) => error.stderr
        )
      expect(await check({})).to.equal('')
      expect(await check({ NODE_OPTIONS: `--require ${old}` })).to.contain('The tests need Node 24 or newer, this is v')
    }
  })

  it('makes packages that npm installs before anything of svc is published', async () => {
    const alone = await mkdtemp(join(tmpdir(), 'svc-fresh-'))
    try {
      const plugin = join(alone, 'plugin')
      await newPlugin({ name: 'svc-plugin-fresh', kinds: ['command'], js: true, dir: plugin })
      const env = {
        ...process.env,
        npm_config_registry: 'http://127.0.0.1:9/',
        npm_config_offline: 'true',
        npm_config_cache: alone,
      }
      await run('npm', ['install', '--no-audit', '--no-fund'], { cwd: plugin, env })
      const { stdout } = await run(process.execPath, [...CONDITIONS, '--test', '--test-reporter=tap'], {
        cwd: plugin,
        env: Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'NODE_TEST_CONTEXT')),
      })
      expect(stdout).to.match(/^# fail 0$/m)
    } finally {
      await rm(alone, { recursive: true, force: true })
    }
  })

  it('makes packages that build and in which lint finds nothing', async () => {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const env = { ...process.env, ...FRUGAL }
    const problems: string[] = []
    for (const kind of PACKAGES) {
      const cwd = join(folder, `${kind}-ts`)
      if (kind !== 'vertical')
        await run(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd, env }).catch(
          (error: { stdout: string }) => void problems.push(error.stdout)
        )
      for (const language of ['ts', 'js']) {
        const findings = await lintPlugin(join(folder, `${kind}-${language}`))
        problems.push(...findings.map(({ code, message }) => `${kind}-${language} ${code} ${message}`))
      }
    }
    expect(problems).to.deep.equal([])
  })

  it('makes no package of several kinds with one that needs its own', async () => {
    for (const kinds of [
      ['tool', 'provider'],
      ['store', 'tool'],
      ['vertical', 'check'],
    ] as const) {
      const made = newPlugin({ name: 'svc-plugin-both', kinds, js: true, dir: join(folder, 'both') })
      expect(
        await made.then(
          () => 'made',
          (error: { code: string }) => error.code
        )
      ).to.equal('KINDS_SEPARATE')
    }
    expect(await readdir(folder)).to.not.include('both')
  })

  it('makes JavaScript with nothing of TypeScript in it, and packages that carry what npm and svc ask for', async () => {
    for (const kind of PACKAGES) {
      const inside = await readdir(join(folder, `${kind}-js`), { recursive: true })
      expect(inside.filter(path => path.endsWith('.ts'))).to.deep.equal([])
      expect(inside).to.include.members(['README.md', 'LICENSE', '.gitignore', 'package.json'])
      const texts = await Promise.all(
        inside.filter(path => path.endsWith('.js')).map(path => readFile(join(folder, `${kind}-js`, path), 'utf8'))
      )
      expect(await readFile(join(folder, `${kind}-js`, 'README.md'), 'utf8')).to.not.match(/\.ts\b/)
      expect(texts.join('\n')).to.not.match(/\/\/js:|^(import|export) (type|interface) |sample_word|SampleWord/m)
    }
  })
})

async function testsIn(folder: string): Promise<string[]> {
  const names = await readdir(join(folder, 'test')).catch(() => [])
  return names.filter(name => name.includes('.test.')).map(name => join(folder, 'test', name))
}
