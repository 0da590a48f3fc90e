import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { spawnSync } from 'node:child_process'
import { expect } from 'chai'

/** What a person starts: the tests' own entry has no cache. */
const BIN = fileURLToPath(new URL('../../cli/bin/svc.js', import.meta.url))

describe('code that svc has compiled', () => {
  let base: string
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'svc-compiled-'))
    await mkdir(join(base, 'tmp'), { mode: 0o777 })
    await mkdir(join(base, 'home'), { mode: 0o700 })
  })
  afterEach(() => rm(base, { recursive: true, force: true }))

  const svc = (env: Readonly<Record<string, string>> = {}) =>
    spawnSync(process.execPath, ['--conditions=svc-source', BIN, '--version'], {
      env: { PATH: process.env.PATH, SVC_HOME: join(base, 'home'), TMPDIR: join(base, 'tmp'), ...env },
      encoding: 'utf8',
    })

  /** Writes code of the attacker's into what Node has stripped of its types; the head of each file has its size and sum. */
  async function poison(folder: string) {
    const names = await readdir(folder, { recursive: true, withFileTypes: true })
    for (const name of names.filter(entry => entry.isFile())) {
      const file = join(name.parentPath, name.name)
      const bytes = await readFile(file)
      const text = bytes.subarray(20).toString('latin1')
      if (!text.includes('async function main(words')) continue
      const evil = Buffer.from(`process.stderr.write("POISONED");${text}`, 'latin1')
      bytes.writeUInt32LE(evil.length, 8)
      bytes.writeUInt32LE(crc32(evil), 16)
      await writeFile(file, Buffer.concat([bytes.subarray(0, 20), evil]))
    }
  }

  it('is not read from the folder for temporary files, where another user could put it in advance', async () => {
    const planted = join(base, 'tmp/node-compile-cache')
    expect(svc({ NODE_COMPILE_CACHE: planted }).stdout).to.contain('@svc/cli')
    await poison(planted)
    expect(svc({ NODE_COMPILE_CACHE: planted }).stderr, 'the attack').to.contain('POISONED')
    expect(svc()).to.include({ status: 0, stderr: '' })
  })

  it('lies in the svc home, and nowhere where that home is not there or others can write it', async () => {
    expect(svc().status).to.equal(0)
    expect(await readdir(join(base, 'home/compile-cache'))).to.have.length(1)
    expect(await readdir(join(base, 'tmp'))).to.deep.equal([])
    await mkdir(join(base, 'open'))
    await chmod(join(base, 'open'), 0o777)
    for (const home of ['none', 'open']) {
      expect(svc({ SVC_HOME: join(base, home) }).status).to.equal(0)
      expect(existsSync(join(base, home, 'compile-cache'))).to.equal(false)
    }
    expect(await readdir(join(base, 'tmp'))).to.deep.equal([])
  })
})
