import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { appendFile, lstat, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { DEFAULTS } from '../../cli/src/curated.ts'
import { runSvc } from '../support/command.ts'
import { startService } from '../support/service.ts'
import { tidesFolder } from '../support/tides.ts'
import { describeWith } from '../support/needs.ts'

/** What the README of the example says, in its order: install, build, start. */
const EXAMPLES = fileURLToPath(new URL('../../examples/plugins/', import.meta.url))
const CURATED = join(EXAMPLES, 'curated-build')
const CONFIG = readFileSync(join(CURATED, 'svc.config.yaml'), 'utf8')
const NOTICE = 'svc-plugin-example-notice'
const KEPT = (DEFAULTS.plugins as string[]).filter(name => !CONFIG.includes(`"${name}"`))

const runNode = (args: readonly string[], options: { env: NodeJS.ProcessEnv }) =>
  promisify(execFile)(process.execPath, args, options)

describeWith('bubblewrap', 'svc build', function () {
  this.timeout(120_000)
  let folder: string
  let home: string
  const svc = (cwd: string, ...args: string[]) => runSvc(args, { home, cwd })

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-build-'))
    home = join(folder, 'home')
    const installed = await svc(CURATED, 'plugins', 'install', join(EXAMPLES, 'notice'), '--yes')
    expect(installed.code, installed.err).to.equal(0)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('writes the same bytes each time, with the configured plugins and no others, and starts with npm start', async () => {
    expect(KEPT.length).to.be.within(20, 40)
    for (const name of ['one', 'two']) {
      const { code, out, err } = await svc(CURATED, 'build', join(folder, name), '--json')
      expect(code, err).to.equal(0)
      const { plugins } = JSON.parse(out) as { plugins: { name: string }[] }
      expect(plugins.map(plugin => plugin.name)).to.have.members([...KEPT, NOTICE])
    }
    const [first, two] = await Promise.all(['one', 'two'].map(name => entriesOf(join(folder, name))))
    expect(first).to.deep.equal(two)
    expect(await textsBelow(join(folder, 'one', 'plugins'))).to.not.contain(folder)
    const lock = await readFile(join(folder, 'one', 'svc-plugins.lock'), 'utf8')
    expect(lock).to.not.contain(folder).and.not.contain(EXAMPLES)
    const own = (await readdir(join(folder, 'one', 'node_modules', '@svc'))).filter(name => /^plugin-(?!kit$)/.test(name))
    expect(own).to.have.members(KEPT.map(name => name.replace('@svc/', '')))
    const image = await readFile(join(folder, 'one', 'Containerfile'), 'utf8')
    expect(image).to.match(/^FROM .*node.*$/m)
    expect(image.includes('SVC_SERVER__RATE_LIMIT__ENABLED=true')).to.equal(KEPT.includes('@svc/plugin-rate-limit'))
    await rm(join(folder, 'two'), { recursive: true })
    await using service = await startService({
      command: ['npm', 'start', '--silent', '--'],
      home: join(folder, 'data'),
      cwd: join(folder, 'one'),
    })
    expect((await fetch(`${service.url}/health`)).status).to.equal(200)
    const notice = await fetch(`${service.url}/notice`)
    expect(await notice.json()).to.deep.equal({ notice: 'Built, not assembled.' })
    expect((await fetch(`${service.url}/docs`)).status).to.equal(404)
  })

  it('has its options, and says at the start what is wrong with them and that a file has changed: build it anew', async () => {
    const strange = join(folder, 'strange.json')
    await writeFile(strange, '{ "chat": { "message_limt": 1 } }')
    const build = join(folder, 'one')
    const { set } = JSON.parse(await readFile(join(build, 'svc-plugins.lock'), 'utf8')) as { set: string }
    await appendFile(join(build, 'plugins', 'sets', set, 'node_modules', NOTICE, 'index.js'), '// mine\n')
    const options = ['--config', strange, '--port', '0']
    const env = { PATH: process.env.PATH, SVC_HOME: join(folder, 'data') }
    const refused = await runNode([join(build, 'start.mjs'), ...options], { env }).catch(Object)
    expect(refused).to.include({ code: 1 })
    expect(refused.stderr).to.contain('did you mean "message_limit"')
    expect(refused.stderr).to.contain(`PLUGIN_CHANGED  ${NOTICE}`).and.contain('svc build').and.not.contain('svc plugins update')
  })

  it('writes nothing over what is there, and nothing of a plugin that lies in a folder of its own', async () => {
    const taken = await svc(folder, 'build', '.')
    expect(taken.code).to.equal(1)
    expect(taken.err).to.contain('BUILD_FOLDER_TAKEN')
    const loose = await tidesFolder(folder, {
      version: '1.0.0',
      name: 'svc-plugin-loose',
      svc: { contributes: {} },
      files: { 'index.js': 'export default { setup() {} }' },
    })
    await writeFile(join(folder, 'loose.json'), JSON.stringify({ plugins: [loose] }))
    const before = await readdir(folder)
    const refused = await svc(folder, 'build', 'three', '--config', 'loose.json')
    expect(refused.code).to.equal(1)
    expect(refused.err).to.contain('BUILD_PLUGIN_LOOSE  svc-plugin-loose')
    expect(await readdir(folder)).to.have.members(before)
  })
})

/** Path → what is there: rights, times, and content or where it leads. */
async function entriesOf(folder: string): Promise<Record<string, string>> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const all = found.map(async item => {
    const path = join(item.parentPath, item.name)
    const { mode, mtimeMs } = await lstat(path)
    const content = item.isSymbolicLink() ? await readlink(path) : item.isFile() ? hashOf(await readFile(path)) : ''
    return [path.slice(folder.length), `${mode} ${mtimeMs} ${content}`] as const
  })
  return Object.fromEntries((await Promise.all(all)).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** All that is written in the files below a folder, in one. */
async function textsBelow(folder: string): Promise<string> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(item => item.isFile())
  return (await Promise.all(files.map(file => readFile(join(file.parentPath, file.name), 'latin1')))).join('\n')
}

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
