import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort, missingEngine, programPath, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith, itWith, lacking } from '../../../../test/support/needs.ts'

const START_ALL = fileURLToPath(new URL('support/start-all.ts', import.meta.url))

/** The folders of engines that processes of this machine work in, with the number of processes. */
function engineFolders(): Map<string, number> {
  const folders = readdirSync('/proc').flatMap(pid => {
    try {
      return /^\d+$/.test(pid) ? [/^.*\/svc-engines-\w+/.exec(readlinkSync(`/proc/${pid}/cwd`))?.[0] ?? ''] : []
    } catch {
      return [] // it has ended, or belongs to another user
    }
  })
  return new Map([...Map.groupBy(folders.filter(Boolean), folder => folder)].map(([folder, all]) => [folder, all.length]))
}

/** A test process of its own, and the folder of its engines. */
async function startProcess(...words: string[]): Promise<{ child: ChildProcess; folder: string; processes: number }> {
  const before = engineFolders()
  const args = ['--conditions=svc-source', START_ALL, ...words]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const lines = createInterface(child.stdout!)
  await Promise.race([once(lines, 'line'), once(lines, 'close')])
  lines.close()
  const isOurs = (folder: string) => readdirSync(folder).some(name => name.startsWith('redis'))
  const [found] = [...engineFolders()].filter(([folder]) => !before.has(folder) && isOurs(folder))
  return { child, folder: found![0], processes: found![1] }
}

describeWith('redis', 'the processes of test engines', () => {
  const all = lacking('pgbouncer') || lacking('postgres') ? 'redis' : 'pgbouncer,redis'

  it('end, and their files are removed, when the test process is killed', async () => {
    const { child, folder, processes } = await startProcess(all)
    expect(processes).to.be.at.least(all === 'redis' ? 1 : 8)
    child.kill('SIGKILL')
    while (existsSync(folder)) await sleep(10)
    expect(engineFolders().get(folder)).to.equal(undefined)
  })

  it('end, and their files are removed, when the test process ends with an error and closes nothing', async () => {
    const before = engineFolders()
    const child = spawn(process.execPath, ['--conditions=svc-source', START_ALL, 'redis', 'throw'], { stdio: 'ignore' })
    const [code] = (await once(child, 'exit')) as [number]
    expect(code).to.equal(1)
    while ([...engineFolders().keys()].some(folder => !before.has(folder))) await sleep(10)
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

  itWith('redis', it)('listen on ports that the kernel gives to no other process', async () => {
    const ports = await Promise.all(Array.from({ length: 50 }, freePort))
    for (const port of ports) expect(port).to.be.within(20_000, 32_767)
  })
})
