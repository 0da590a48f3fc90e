import { type Redis, startRedis } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import { failureText } from './support/writers.ts'

describeWith('redis', 'the test engine Redis', () => {
  const stack = new AsyncDisposableStack()
  let redis: Redis

  before(async () => {
    redis = stack.use(await startRedis())
  })
  after(() => stack.disposeAsync())

  it('loses all keys when it is flushed', async () => {
    await redis.command('SET', 'key', 'value')
    expect(await redis.command('GET', 'key')).to.equal('value')
    await redis.flush()
    expect(await redis.command('GET', 'key')).to.equal(null)
  })

  it('loses its data when it is killed, and serves on the same port when it starts', async () => {
    await redis.command('SET', 'key', 'value')
    await redis.kill()
    expect(await redis.command('GET', 'key').catch(failureText)).to.match(/ECONNREFUSED|closed/i)
    await redis.start()
    expect(await redis.command('GET', 'key')).to.equal(null)
    await redis.stop()
    await redis.start()
    expect(await redis.command('PING')).to.equal('PONG')
  })

  it('keeps acknowledged keys when it is persistent and killed', async () => {
    await using kept = await startRedis({ persistent: true })
    for (let n = 0; n < 20; n++) await kept.command('INCR', 'count')
    await kept.kill()
    await kept.start()
    expect(await kept.command('GET', 'count')).to.equal('20')
  })

  const FULL = { maxMemory: '2mb' } as const
  const fill = async (full: Redis) => {
    for (let n = 0; n < 40; n++) await full.command('SET', `key ${n}`, 'x'.repeat(100_000))
  }

  it('rejects writes when its memory is full', async () => {
    await using full = await startRedis(FULL)
    expect(await fill(full).catch(failureText)).to.match(/^OOM command not allowed/)
    expect(await full.command('PING')).to.equal('PONG')
  })

  it('evicts keys when its memory is full and the policy allows it', async () => {
    await using full = await startRedis({ ...FULL, maxMemoryPolicy: 'allkeys-lru' })
    await fill(full)
    expect(await full.command('GET', 'key 39')).to.have.length(100_000)
    expect(await full.command('EXISTS', 'key 0')).to.equal(0)
  })

  it('shows its log when a setting prevents its start', async () => {
    const message = await startRedis({ settings: { databases: 'plenty' } }).catch(failureText)
    expect(message).to.match(/^Redis ended at its start \(1\)\..*databases/s)
  })
})
