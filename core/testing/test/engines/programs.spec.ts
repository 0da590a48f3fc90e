import { execFile, spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readlinkSync, rmdirSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort, missingEngine, programPath, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith, itWith, lacking } from '../../../../test/support/needs.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'))
const START_ALL = fileURLToPath(new URL('support/start-all.ts', import.meta.url))

/** The number of processes of this machine that work below a folder. */
function processesIn(folder: string): number {
  const isIn = (pid: string) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
    } catch {
      return false // it has ended, or belongs to another user
    }
  }
  return readdirSync('/proc').filter(name => /^\d+$/.test(name) && isIn(name)).length
}

describeWith('redis', 'the processes of test engines', () => {
  let folder: string
  /** A test process of its own, whose engines are in `folder`. */
  const start = (words: string[], stdio: StdioOptions) =>
    spawn(process.execPath, ['--conditions=svc-source', START_ALL, ...words], { stdio, env: { ...process.env, TMPDIR: folder } })
  const removed = async () => {
    while (readdirSync(folder).length > 0) await sleep(10)
  }

  beforeEach(() => {
    folder = mkdtempSync('/var/tmp/svc-engines-spec-')
    chmodSync(folder, 0o755)
  })
  afterEach(() => rmdirSync(folder))

  it('end, and their files are removed, when the test process is killed', async () => {
    const isAll = lacking('pgbouncer') === undefined && lacking('postgres') === undefined
    const child = start([isAll ? 'pgbouncer,redis' : 'redis'], ['ignore', 'pipe', 'ignore'])
    const lines = createInterface(child.stdout!)
    await Promise.race([once(lines, 'line'), once(child, 'exit')])
    lines.close()
    expect(processesIn(folder)).to.be.at.least(isAll ? 8 : 1)
    child.kill('SIGKILL')
    await removed()
    expect(processesIn(folder)).to.equal(0)
  })

  it('end when the test process ends with an error and closes nothing; a missing client package is one', async () => {
    const child = start(['redis', 'hide-ioredis'], ['ignore', 'ignore', 'pipe'])
    const [output, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')])
    expect(code).to.equal(1)
    expect(output).to.include('ENGINE_CLIENT_MISSING').and.include('Run npm install --save-dev ioredis')
    await removed()
    expect(processesIn(folder)).to.equal(0)
  })

  it('end, and their files are removed, when the engine is disposed', async () => {
    const redis = await startRedis()
    const [, folder] = (await redis.command('CONFIG', 'GET', 'dir')) as [string, string]
    expect(existsSync(folder)).to.equal(true)
    await redis[Symbol.asyncDispose]()
    await redis[Symbol.asyncDispose]()
    expect(existsSync(folder)).to.equal(false)
    expect(await redis.command('PING').catch((error: Error) => error.message)).to.match(/ECONNREFUSED|closed/i)
  })
})

describe('the programs of test engines', () => {
  const path = process.env.PATH
  afterEach(() => {
    process.env.PATH = path
  })

  it('are found outside PATH, where Debian puts them', () => {
    process.env.PATH = ''
    for (const name of ['postgres', 'pgbouncer'] as const)
      if (lacking(name) === undefined) expect(programPath(name), name).to.be.a('string')
  })

  it('have a reason when they are not installed, which the start reports with the package to install', async () => {
    process.env.PATH = '/nowhere'
    expect(missingEngine('redis')).to.equal('Redis is not installed on this machine')
    const error = await startRedis().catch((err: unknown) => err)
    expect(error).to.include({ code: 'ENGINE_MISSING', message: 'Redis is not installed on this machine' })
    expect(error).to.have.property('hint').that.includes('apt-get install redis-server')
  })

  it('are not needed: tests without their program are skipped, and their titles have the reason', async () => {
    const file = 'plugins/storage/counts-redis/test/kit.spec.ts'
    const words = ['--conditions=svc-source', MOCHA, '--no-config', '--reporter', 'json', file]
    const env = { ...process.env, NODE_OPTIONS: '', SVC_TEST_HIDDEN: 'redis-server' }
    const { stdout } = await promisify(execFile)(process.execPath, words, { cwd: ROOT, env })
    const { stats, pending } = JSON.parse(stdout) as { stats: Mocha.Stats; pending: { fullTitle: string }[] }
    expect([stats.passes, stats.failures]).to.deep.equal([0, 0])
    expect(pending.length).to.be.above(3)
    for (const { fullTitle } of pending)
      expect(fullTitle).to.include('counts in Redis [skipped: Redis is not installed on this machine]')
  }).timeout(60_000)

  itWith('redis', it)('listen on ports that the kernel gives to no other process', async () => {
    const ports = await Promise.all(Array.from({ length: 50 }, freePort))
    for (const port of ports) expect(port).to.be.within(20_000, 32_767)
  })
})
