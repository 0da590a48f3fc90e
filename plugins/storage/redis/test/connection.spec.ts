import { hash } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { codeOf, messageOf, systemContext } from '@svc/core'
import { Checks, Redis as RedisToken, type RedisNotice } from '@svc/core/contracts'
import { makeCertificate, testHost } from '@svc/testing'
import { freePort, type Redis, startRedis, startTcpProxy } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'

const PLUGIN = { name: '@svc/plugin-redis', use: new URL('..', import.meta.url) }
const ctx = systemContext(new AbortController().signal, 'test')
const [SET, GET] = [`return redis.call('SET', KEYS[1], ARGV[1])['ok']`, `return redis.call('GET', KEYS[1])`]

const openHost = (clusterId: string, section: object) => testHost([PLUGIN], { clusterId, config: { redis: { ...section } } })

async function becomes(what: string, holds: () => Promise<boolean>, ms = 40_000): Promise<void> {
  for (const end = Date.now() + ms; !(await holds()); await new Promise(resolve => setTimeout(resolve, 20)))
    if (Date.now() > end) throw new Error(`${what} did not happen within ${ms} ms`)
}

describeWith('redis', 'the connection to Redis', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis
  before(async () => (redis = stack.use(await startRedis())))
  after(() => stack.disposeAsync())

  it('keeps all keys and channels below the prefix of the cluster, whatever their name', async () => {
    await using one = await openHost('one', { url: redis.url })
    await using two = await openHost('one:two', { url: redis.url })
    const [a, b] = [one.service(RedisToken), two.service(RedisToken)]
    const names = [
      '',
      'a',
      '*',
      '?[a-z]',
      'two:a',
      '../a',
      '\u0000',
      'a\r\nFLUSHALL\r\n',
      'é\ud83d\ude00',
      'x'.repeat(5_000),
      '{x}y',
      '%3A',
    ]
    for (const name of names) {
      expect(await a.run(SET, [name], ['of one'], ctx)).to.equal('OK')
      expect(await b.run(GET, [name], [], ctx), name.slice(0, 20)).to.equal(null)
      expect(await b.run(SET, [name], ['of two'], ctx)).to.equal('OK')
      expect(await a.run(GET, [name], [], ctx)).to.equal('of one')
    }
    const keys = (await redis.command('KEYS', '*')) as string[]
    expect(keys.filter(key => !/^svc:one(%3Atwo)?:/.test(key))).to.deep.equal([])
    expect(keys).to.have.length(2 * names.length)
  })

  it('sends bytes as they are, and tells its prefix to libraries', async () => {
    await using one = await openHost('bytes', { url: redis.url })
    const service = one.service(RedisToken)
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at)
    const hex = `return redis.sha1hex(ARGV[1])`
    expect(await service.run(hex, [], [bytes.subarray(1)], ctx)).to.equal(hash('sha1', bytes.subarray(1)))
    expect(await service.run(hex, [], [new Uint8Array()], ctx)).to.equal(hash('sha1', ''))
    expect(await service.prefix(ctx)).to.equal('svc:bytes:')
    await service.run(SET, ['own'], ['x'], ctx)
    expect(await redis.command('GET', `${await service.prefix(ctx)}own`)).to.equal('x')
  })

  it('delivers the messages of a channel to those of its cluster, and says when others can be lost', async () => {
    await using proxy = await startTcpProxy(redis)
    await using one = await openHost('listen', { url: proxy.url })
    await using two = await openHost('other', { url: redis.url })
    const got: RedisNotice[] = []
    const foreign: RedisNotice[] = []
    const ending = new AbortController()
    const listen = async (host: typeof one, into: RedisNotice[]) => {
      for await (const notice of host.service(RedisToken).listen(['*', 'news\n'], { ...ctx, signal: ending.signal }))
        into.push(notice)
    }
    const reading = [listen(one, got), listen(two, foreign)]
    await becomes('the first notices', async () => got.length === 1 && foreign.length === 1)
    const publish = async (channel: string, text: string) => {
      await one.service(RedisToken).run(`return redis.call('PUBLISH', KEYS[1], ARGV[1])`, [channel], [text], ctx)
    }
    await publish('news', 'without a reader')
    await publish('news\n', 'first')
    await becomes('the message', async () => got.length === 2)
    expect(got).to.deep.equal([{}, { channel: 'news\n', payload: 'first' }])
    proxy.cut()
    await becomes('the notice after a new connection', async () => got.length === 3)
    expect(got[2]).to.deep.equal({})
    await becomes('a message', async () => {
      await publish('*', 'second').catch(() => {})
      return got.length > 3
    })
    expect(got[3]).to.deep.equal({ channel: '*', payload: 'second' })
    expect(foreign).to.deep.equal([{}])
    ending.abort()
    await Promise.all(reading)
  })

  it('notices a silent connection within 15 s, and replaces it', async () => {
    await using proxy = await startTcpProxy(redis)
    await using host = await openHost('silent', { url: proxy.url })
    const service = host.service(RedisToken)
    const notices: RedisNotice[] = []
    const ending = new AbortController()
    const reading = (async () => {
      for await (const notice of service.listen(['news'], { ...ctx, signal: ending.signal })) notices.push(notice)
    })()
    await becomes('the first notice', async () => notices.length === 1)
    proxy.drop()
    const began = performance.now()
    const sent = service.run(SET, ['key'], ['1'], ctx).then(
      () => 'answered',
      (error: unknown) => codeOf(error)
    )
    const check = host.slot(Checks).get('redis')!
    await becomes('the report', async () => (await check.probe(ctx)).status === 'degraded', 15_000)
    expect(await sent, 'it is unknown whether it was done').to.equal('STORE_UNSURE')
    expect(performance.now() - began).to.be.below(15_000)
    // the connection that listens is checked at another time
    await sleep(Math.max(0, 10_000 - (performance.now() - began)))
    proxy.heal()
    await becomes('the next connection', async () => (await check.probe(ctx)).status === 'healthy')
    await becomes('the next notice', async () => notices.length > 1)
    ending.abort()
    await reading
  })

  it('reads the password for each connection, and reports a wrong one without it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-redis-'))
    try {
      const [file, script] = [join(folder, 'password'), join(folder, 'print')]
      writeFileSync(file, 'wrong-8c2f\n')
      writeFileSync(script, `#!/bin/sh\ncat ${file}\n`)
      chmodSync(script, 0o700)
      const url = `redis://127.0.0.1:${redis.port}`
      await using host = await openHost('password', { url, password_command: [script], wait_ms: 100 })
      const service = host.service(RedisToken)
      const error: unknown = await service.run(GET, ['key'], [], ctx).catch((thrown: unknown) => thrown)
      const server = `127.0.0.1:${redis.port}`
      expect([codeOf(error), messageOf(error)]).to.deep.equal([
        'STORE_UNAVAILABLE',
        `Redis rejected the user or the password (${server})`,
      ])
      await using without = await openHost('no password', { url, wait_ms: 100 })
      const missing = await without.service(RedisToken).run(GET, ['key'], [], ctx).catch(messageOf)
      expect(missing).to.equal(`Redis requires a password (${server})`)
      await using nowhere = await openHost('nowhere', { url: 'redis://localhost:1', wait_ms: 100 })
      expect(await nowhere.slot(Checks).get('redis')!.probe(ctx)).to.deep.equal({
        status: 'degraded',
        reason: 'no Redis server answers (localhost:1)',
        code: 'REDIS_UNAVAILABLE',
        hint: 'Check Redis, the network, and redis.tls.mode',
      })
      expect(JSON.stringify([error, messageOf(error), (error as Error).stack])).to.not.include('wrong-8c2f')
      writeFileSync(file, `${redis.password}\n`)
      await becomes('the connection', () =>
        service.run(GET, ['key'], [], ctx).then(
          () => true,
          () => false
        )
      )
      const paths = (await import('@svc/core/contracts')).ProtectedPaths
      expect(host.slot(paths).get('redis')?.paths).to.include(script)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('encrypts the connection, and rejects a certificate that it does not know', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-redis-tls-'))
    const { cert, key } = makeCertificate()
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    writeFileSync(certFile, cert)
    writeFileSync(keyFile, key)
    chmodSync(folder, 0o755) // Redis runs as another user
    const port = await freePort()
    const settings = {
      'tls-port': port,
      'tls-cert-file': certFile,
      'tls-key-file': keyFile,
      'tls-auth-clients': 'no',
      'tls-ca-cert-file': certFile,
    }
    try {
      await using own = await startRedis({ settings })
      const url = `rediss://:${own.password}@localhost:${port}`
      await using trusted = await openHost('tls', { url, tls: { ca_file: certFile } })
      expect(await trusted.service(RedisToken).run(SET, ['key'], ['1'], ctx)).to.equal('OK')
      await using distrusted = await openHost('tls', { url, wait_ms: 100 })
      const failed = await distrusted.service(RedisToken).run(GET, ['key'], [], ctx).catch(codeOf)
      expect(failed).to.equal('STORE_UNAVAILABLE')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('reports errors of Redis without its text, and goes on', async () => {
    await using host = await openHost('errors', { url: redis.url })
    const service = host.service(RedisToken)
    await service.run(SET, ['text'], ['x'], ctx)
    for (const script of [`return redis.call('HGETALL', KEYS[1])`, `error('canary-' .. KEYS[1])`, 'this is no script']) {
      const error: unknown = await service.run(script, ['text'], [], ctx).catch((thrown: unknown) => thrown)
      expect(codeOf(error), script).to.equal('STORE_UNAVAILABLE')
      expect(messageOf(error)).to.not.include('canary').and.not.include('svc:errors')
    }
    const aborted = { ...ctx, signal: AbortSignal.abort(new Error('left')) }
    expect(messageOf(await service.run(GET, ['text'], [], aborted).catch((thrown: unknown) => thrown))).to.include('left')
    expect(await service.run(GET, ['text'], [], ctx)).to.equal('x')
  })
})
