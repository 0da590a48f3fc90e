import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { until } from '../support/wait.ts'
import { createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { startService } from '../support/service.ts'
import { configureFew, DIES, TIDES, tidesFile } from '../support/tides.ts'
import { describeWith } from '../support/needs.ts'

const FLIP = 'svc-plugin-flip'
/** Runs in the process of the host, and writes at that moment, after the files were verified, what the file \`flip\` of the home says. */
const FLIPS = `import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { definePlugin } from '@svc/core'

const order = new URL('../../../../../flip.json', import.meta.url)
if (existsSync(order))
  for (const [file, from, to] of JSON.parse(readFileSync(order, 'utf8'))) {
    const target = new URL(file, import.meta.url)
    const before = readFileSync(target, 'utf8')
    writeFileSync(target, before.replace(from, to))
    if (from === to) writeFileSync(target, before)
  }
export default definePlugin({ setup() {} })
`

describeWith('bubblewrap', 'files of installed plugins that change after they were verified', function () {
  this.timeout(60_000)
  let folder: string
  let home: string
  const svc = (...args: string[]) => runSvc(args, { home, cwd: folder })
  const plugins = async (...args: string[]) => {
    const { code, err } = await svc('plugins', ...args)
    expect(code, err).to.equal(0)
  }
  const fileOf = async (name: string) => {
    const { set } = JSON.parse(await readFile(join(home, 'svc-plugins.lock'), 'utf8')) as { set: string }
    return join(home, 'plugins', 'sets', set, 'node_modules', name, 'index.js')
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-races-'))
    home = join(folder, 'home')
    await configureFew(folder, { isolation: { plugins: { [TIDES]: { restarts: 1 } } } })
    const tides = await tidesFile(folder, { version: '1.0.0', files: { 'index.js': DIES } })
    const flip = await tidesFile(folder, {
      version: '1.0.0',
      name: FLIP,
      svc: { contributes: { tools: ['flip'] } },
      files: { 'index.js': FLIPS },
    })
    await plugins('install', tides, '--yes')
    await plugins('install', flip, '--isolation', 'in-process', '--trust', '--yes')
  })
  after(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }))

  const TRIES: Readonly<Record<string, readonly [file: string, from: string, to: string]>> = {
    'an isolated plugin, before its process has loaded it': [`../${TIDES}/index.js`, 'high water', 'low water'],
    'a plugin in the process of the host, while it is loaded': ['./index.js', 'setup() {}', 'setup() { }'],
    'an isolated plugin, and are written back at once': [`../${TIDES}/index.js`, 'high water', 'high water'],
  }
  for (const [what, order] of Object.entries(TRIES))
    it(`stop the start: those of ${what}`, async () => {
      const name = order[0].includes(TIDES) ? TIDES : FLIP
      const file = await fileOf(name)
      const good = await readFile(file)
      await writeFile(join(home, 'flip.json'), JSON.stringify([order]))
      try {
        await using _server = await startService({ home, cwd: folder })
        expect.fail('it serves')
      } catch (error) {
        expect((error as Error).message)
          .to.contain('PLUGIN_CHANGED')
          .and.contain(name)
      } finally {
        await rm(join(home, 'flip.json'))
        await writeFile(file, good)
      }
    })

  it('are not run by the process of an isolated plugin that comes back after its death', async () => {
    await using server = await startService({ home, cwd: folder })
    const client = createClient(server.url)
    const notify = async (die: boolean) => (await client.post('/api/v1/chat', { message: `/tool tides {"die": ${die}}` })).text
    expect(await notify(false)).to.contain('high water')
    const file = await fileOf(TIDES)
    const good = await readFile(file, 'utf8')
    await writeFile(file, good.replace('high water', 'low water'))
    expect(await notify(true)).to.contain('"success":false')
    const said = async () => (server.output().includes('ended too often') ? 'given up' : await notify(false))
    expect(await until(said, words => /given up| water/.test(words))).to.equal('given up')
    expect(await notify(false)).to.not.contain('low water')
    expect(server.output()).to.contain('its files differ from the installed ones')
    await writeFile(file, good)
  })
})
