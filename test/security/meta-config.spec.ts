import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { type Service, startService } from '../support/service.ts'

/** Files by which cosmiconfig itself can be configured; each leaves `marker` where it runs. */
const META: Readonly<Record<string, (code: string) => string>> = {
  '.config/config.js': code => code,
  '.config/config.cjs': code => code,
  '.config/config.ts': code => code,
  '.config/config.mjs': code => code.replace(/require\(([^)]*)\)/, 'process.getBuiltinModule($1)'),
  '.config/config.json': () => '{ "$import": "../evil.cjs", "svc": { "chat": { "message_limit": 7 } } }',
  '.config/config.yaml': () => 'cosmiconfig: { searchPlaces: [evil.cjs], mergeSearchPlaces: false }\n$import: ../evil.cjs\n',
  '.config/config.yml': () => 'cosmiconfig: { loaders: {} }\nsvc: { chat: { message_limit: 7 } }\n',
  'package.json': () => '{ "$import": "./evil.cjs", "cosmiconfig": { "$import": "./evil.cjs" }, "svc": {} }',
  'package.yaml': () => '$import: ./evil.cjs\ncosmiconfig: { $import: ./evil.cjs }\n',
}

const COMMANDS = [['--version'], ['config', 'show', '--json'], ['config', 'check', '--json']]

describe('meta configuration of cosmiconfig in the working directory', () => {
  let base: string
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'svc-meta-'))
  })
  afterEach(() => rm(base, { recursive: true, force: true }))

  const marker = () => join(base, 'executed')
  const code = () => `require('node:fs').writeFileSync(${JSON.stringify(marker())}, ''); module.exports = {}\n`

  async function plant(folder: string, name: string) {
    const write = async (file: string, text: string) => {
      await mkdir(dirname(join(folder, file)), { recursive: true })
      await writeFile(join(folder, file), text)
    }
    await write('svc.config.yaml', 'chat: { message_limit: 10 }\n')
    await write('evil.cjs', code())
    await write(name, META[name]!(code()).replace('module.exports = {}', name.endsWith('.mjs') ? '' : 'module.exports = {}'))
  }

  for (const name of Object.keys(META))
    it(`is neither executed nor read: ${name}`, async () => {
      const folder = join(base, 'project')
      await plant(folder, name)
      const home = join(base, 'home')
      const [version, shown, checked] = await Promise.all(COMMANDS.map(args => runSvc(args, { home, cwd: folder })))
      expect(existsSync(marker()), 'executed').to.equal(false)
      expect(version).to.include({ code: 0 })
      expect(checked).to.include({ code: 0 })
      const { values } = JSON.parse(shown!.out) as { values: { key: string; value: unknown; source: string }[] }
      expect(values.find(value => value.key === 'chat.message_limit')).to.include({ value: 10, source: 'svc.config.yaml:1' })
    })

  it('is not executed at a start nor at a reload', async () => {
    const folder = join(base, 'project')
    await plant(folder, '.config/config.js')
    await using server: Service = await startService({ cwd: folder })
    expect(existsSync(marker()), 'executed at the start').to.equal(false)
    expect(await runSvc(['reload'], { home: server.home, cwd: folder })).to.include({ code: 0 })
    expect(existsSync(marker()), 'executed at the reload').to.equal(false)
  })
})
