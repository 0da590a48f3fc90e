import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { freePort, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { runSvc } from './support/command.ts'
import { COMPILED, SVC } from './support/entry.ts'
import { describeWith } from './support/needs.ts'
import { inNewHome, newHome, startService } from './support/service.ts'
import { configureFew } from './support/tides.ts'
import { until } from './support/wait.ts'

/** A server whose Redis or PostgreSQL is down ends within this time. */
const SOON_MS = 10_000
/** A signal ends a start within this time. */
const AT_ONCE_MS = 3_000

/** A port that accepts connections and never answers. */
async function startSilent(): Promise<{ readonly port: number; readonly asked: Promise<unknown> } & AsyncDisposable> {
  const sockets = new Set<{ destroy(): void }>()
  const server: Server = createServer(socket => void sockets.add(socket.on('error', () => {})))
  const asked = once(server, 'connection')
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.address() as { port: number }).port,
    asked,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await once(server.close(), 'close')
    },
  }
}

interface Starting {
  readonly child: ChildProcess
  output(): string
  /** The exit code, and the milliseconds since the worker has begun to connect. */
  readonly ended: Promise<{ readonly code: number | null; readonly ms: number }>
}

/** `svc serve`, which does not get ready. */
function serveIn(home: string, begun: RegExp): Starting {
  const child = spawn(process.execPath, [...SVC, 'serve', '--port', '0', '--json'], {
    env: { PATH: process.env.PATH, ...COMPILED, SVC_HOME: home },
    cwd: home,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [text, since] = ['', performance.now()]
  let hasBegun = false
  const add = (data: Buffer) => {
    text += data.toString()
    if (!hasBegun && begun.test(text)) [hasBegun, since] = [true, performance.now()]
  }
  child.stdout.on('data', add)
  child.stderr.on('data', add)
  const ended = once(child, 'exit').then(([code]) => ({ code: code as number | null, ms: performance.now() - since }))
  return { child, output: () => text, ended }
}

/** The configuration of a server with one store for several, whose Redis or PostgreSQL is at a port. */
const CLUSTERS = {
  Redis: (port: number) => ({ cluster: { name: 'shop' }, redis: { url: `redis://:the-password@127.0.0.1:${port}` } }),
  PostgreSQL: (port: number) => ({ store: { url: `postgres://svc:the-password@127.0.0.1:${port}/svc` } }),
}
const CODES = { Redis: 'REDIS_UNAVAILABLE', PostgreSQL: 'POSTGRES_UNAVAILABLE' }

for (const [name, configOf] of Object.entries(CLUSTERS)) {
  const code = CODES[name as keyof typeof CODES]
  describe(`a server of a cluster that starts while ${name} is down`, () => {
    it('ends soon, and names it with host and port', () =>
      inNewHome(async home => {
        const port = await freePort()
        await writeFile(join(home, 'svc.config.json'), JSON.stringify(configOf(port)))
        const { ended, output } = serveIn(home, /there is no connection to Redis/)
        const began = performance.now()
        const { code: exit, ms } = await ended
        expect(exit, output()).to.equal(1)
        expect(output()).to.include(code).and.include(`no ${name} server answers (127.0.0.1:${port})`)
        expect(output()).to.not.include('TAP_TIMEOUT').and.not.include('the-password')
        // no log line of another plugin about the bus
        expect(output()).to.not.include('has not joined the bus')
        if (name === 'Redis') expect(ms).to.be.below(SOON_MS)
        else expect(performance.now() - began).to.be.below(3 * SOON_MS)
      })).timeout(120_000)

    it('ends at once after SIGTERM', () =>
      inNewHome(async home => {
        await using silent = await startSilent()
        await configureFew(home, configOf(silent.port))
        const { child, ended, output } = serveIn(home, /^$/)
        await Promise.race([silent.asked, ended])
        if (name === 'PostgreSQL') {
          const isOver = () => output().includes(`waiting for PostgreSQL at 127.0.0.1:${silent.port}`) || child.exitCode !== null
          await until(async () => isOver(), Boolean)
          expect(child.exitCode, output()).to.equal(null)
        }
        const began = performance.now()
        child.kill('SIGTERM')
        expect((await ended).code, output()).to.equal(0)
        expect(performance.now() - began).to.be.below(AT_ONCE_MS)
      })).timeout(120_000)
  })
}

interface Finding {
  readonly name: string
  readonly state: string
  readonly message: string
  readonly hint?: string
}

describe('svc doctor', () => {
  for (const [name, configOf] of Object.entries(CLUSTERS))
    it(`names ${name} with host and port when it is down`, () =>
      inNewHome(async home => {
        const port = await freePort()
        await writeFile(join(home, 'svc.config.json'), JSON.stringify(configOf(port)))
        const { out } = await runSvc(['doctor', '--json'], { home })
        const { findings } = JSON.parse(out) as { findings: readonly Finding[] }
        const found = findings.find(({ message }) => message.includes(`no ${name} server answers (127.0.0.1:${port})`))
        expect(found, out).to.include(name === 'Redis' ? { name: 'redis', state: 'warn' } : { name: 'store', state: 'fail' })
        expect(found!.message).to.include(`(${CODES[name as keyof typeof CODES]})`)
        expect(found!.hint).to.match(new RegExp(`^Check ${name}`))
        expect(out).to.not.include('the-password')
      })).timeout(120_000)

  it('has the hint of a check that a server does over HTTP, too', () =>
    inNewHome(async home => {
      const port = await freePort()
      await configureFew(home, { redis: { url: `redis://127.0.0.1:${port}`, use: ['counts'] } })
      await using service = await startService({ home })
      const { body } = await createClient(service.url, { keepAlive: false }).get('/api/v1/doctor')
      const found = (body as { findings: readonly Finding[] }).findings.find(finding => finding.name === 'redis')
      expect(found).to.include({ state: 'warn', message: `no Redis server answers (127.0.0.1:${port}) (REDIS_UNAVAILABLE)` })
      expect(found!.hint).to.match(/^Check Redis/)
    })).timeout(120_000)
})

describe('svc config check', () => {
  it('explains why there is no section cache beside Redis', () =>
    inNewHome(async home => {
      const config = { redis: { url: 'redis://127.0.0.1:1' }, cache: { in: 'store' } }
      await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
      const { code, err } = await runSvc(['config', 'check'], { home })
      expect(code).to.equal(1)
      expect(err).to.include('CONFIG_UNOWNED').and.include('remove the section cache, or set redis.use without "cache"')
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ ...config, redis: { ...config.redis, use: ['bus'] } }))
      expect((await runSvc(['config', 'check'], { home })).code).to.equal(0)
    })).timeout(120_000)
})

describeWith('redis', 'a server of a cluster that loses Redis', () => {
  it('rejects a reload soon with the host and the port of Redis, and goes on', async () => {
    await using redis = await startRedis()
    const home = await newHome()
    await configureFew(home, { cluster: { name: 'shop' }, redis: { url: redis.url, use: ['bus'] } })
    await using service = await startService({ home })
    await redis.kill()
    const began = performance.now()
    const { code, err } = await runSvc(['reload'], { home })
    expect(performance.now() - began).to.be.below(3 * SOON_MS)
    const { host } = new URL(redis.url)
    expect([code, err]).to.satisfy(
      ([exit, text]: [number, string]) => exit === 1 && text.includes('REDIS_UNAVAILABLE') && text.includes(`(${host})`),
      err
    )
    expect((await createClient(service.url, { keepAlive: false }).get('/health/ready')).status).to.equal(200)
    await rm(home, { recursive: true })
  }).timeout(120_000)
})
