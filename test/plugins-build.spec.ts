import { createHash } from 'node:crypto'
import { lstat, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { runSvc } from './support/command.ts'
import { post, startService } from './support/service.ts'
import { configureFew, FEW, TIDES, tidesFolder } from './support/tides.ts'

describe('svc build', function () {
  this.timeout(120_000)
  let folder: string
  let home: string
  const svc = (...args: string[]) => runSvc(args, { home, cwd: folder })

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-build-'))
    home = join(folder, 'home')
    await configureFew(folder, { chat: { message_limit: 50 } })
    const installed = await svc('plugins', 'install', await tidesFolder(folder, { version: '1.0.0' }), '--yes')
    expect(installed.code, installed.err).to.equal(0)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('writes the same bytes each time, with the configured plugins and no others, and starts with one command', async () => {
    for (const name of ['one', 'two']) {
      const { code, out, err } = await svc('build', name, '--json')
      expect(code, err).to.equal(0)
      const { plugins } = JSON.parse(out) as { plugins: { name: string }[] }
      expect(plugins.map(one => one.name)).to.have.members([...FEW, TIDES])
    }
    const [one, two] = await Promise.all(['one', 'two'].map(name => entriesOf(join(folder, name))))
    expect(one).to.deep.equal(two)
    expect(await textsBelow(join(folder, 'one', 'plugins'))).to.not.contain(folder)
    expect(await readFile(join(folder, 'one', 'svc-plugins.lock'), 'utf8')).to.not.contain(folder)
    const own = (await readdir(join(folder, 'one', 'node_modules', '@svc'))).filter(name => /^plugin-(?!set$)/.test(name))
    expect(own).to.have.members(FEW.map(name => name.replace('@svc/', '')))
    await rm(join(folder, 'two'), { recursive: true })
    const elsewhere = join(folder, 'data')
    await using service = await startService({
      command: [process.execPath, join(folder, 'one', 'start.mjs'), 'serve'],
      home: elsewhere,
      cwd: tmpdir(),
    })
    expect((await fetch(`${service.url}/health`)).status).to.equal(200)
    const { body } = await post(`${service.url}/api/v1/chat`, { message: '/tool tides {}' })
    expect(body.response).to.contain('the tides of 1.0.0')
    expect((await post(`${service.url}/api/v1/chat`, { message: 'x'.repeat(51) })).status).to.equal(400)
  })

  it('writes nothing over what is there, and nothing of a plugin that lies in a folder of its own', async () => {
    const taken = await svc('build', '.')
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
    const refused = await svc('build', 'three', '--config', 'loose.json')
    expect(refused.code).to.equal(1)
    expect(refused.err).to.contain('BUILD_PLUGIN_LOOSE  svc-plugin-loose')
    expect(await readdir(folder)).to.have.members(before)
  })
})

/** Path → what is there: rights, times, and content or where it leads. */
async function entriesOf(folder: string): Promise<Record<string, string>> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const all = found.map(async one => {
    const path = join(one.parentPath, one.name)
    const { mode, mtimeMs } = await lstat(path)
    const content = one.isSymbolicLink() ? await readlink(path) : one.isFile() ? hashOf(await readFile(path)) : ''
    return [path.slice(folder.length), `${mode} ${mtimeMs} ${content}`] as const
  })
  return Object.fromEntries((await Promise.all(all)).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** All that is written in the files below a folder, in one. */
async function textsBelow(folder: string): Promise<string> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(one => one.isFile())
  return (await Promise.all(files.map(one => readFile(join(one.parentPath, one.name), 'latin1')))).join('\n')
}

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
