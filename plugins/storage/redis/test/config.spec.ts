import { codeOf, messageOf } from '@svc/core'
import { expect } from 'chai'
import { config, connectionOf, type RedisConfig } from '../src/config.ts'

const DEFAULTS = { use: [], connect_timeout_ms: 1_000, command_timeout_ms: 1_000, wait_ms: 1_000 }
const of = (settings: Partial<RedisConfig>) => connectionOf({ ...DEFAULTS, ...settings })
const failure = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    return { code: codeOf(error), message: messageOf(error) }
  }
  throw new Error('it did not fail')
}

describe('the section redis', () => {
  it('reads host, port, database, user and password of a URL', () => {
    expect(of({ url: 'redis://ann:p%40ss@cache.example:6380/3' })).to.deep.include({
      host: 'cache.example',
      port: 6380,
      db: 3,
      user: 'ann',
      password: 'p@ss',
    })
    expect(of({ url: 'redis://localhost' })).to.deep.include({ host: 'localhost', port: 6379, db: 0, tls: false })
    expect(of({ url: 'redis://:secret@[::1]/' })).to.deep.include({ host: '::1', password: 'secret' })
    expect(of({ url: 'redis://127.0.0.1' })).to.not.have.any.keys('user', 'password')
  })

  it('verifies certificates of other machines, unless the configuration says otherwise', () => {
    expect(of({ url: 'redis://127.0.0.1' }).tls).to.equal(false)
    for (const url of ['redis://cache.example', 'rediss://localhost'])
      expect(of({ url }).tls, url).to.deep.equal({ rejectUnauthorized: true })
    expect(of({ url: 'redis://cache.example', tls: { mode: 'off' } }).tls).to.equal(false)
    expect(of({ url: 'rediss://cache.example', tls: { mode: 'unverified', server_name: 'x' } }).tls).to.deep.equal({
      rejectUnauthorized: false,
      servername: 'x',
    })
  })

  it('rejects what is wrong, without a value of the configuration', () => {
    const wrong: Partial<RedisConfig>[] = [
      {},
      { url: 'http://s3cret@host' },
      { url: 'redis://a:s3cret@host:99999' },
      { url: 'redis://a:s3cret%zz@host' },
      { url: 'redis://a:s3cret@host/zero' },
      { url: 'redis://a:s3cret@host?db=1' },
      { url: 'redis://a:s3cret@host\n' },
      { url: 'redis://a:s3cret@ho@st' },
      { url: 'redis://a:s3cret@host', password_env: 'PW' },
      { url: 'redis://a@host', password_env: 'PW', password_file: '/s3cret' },
      { url: 'redis://a@host', tls: { ca_file: '/nowhere/s3cret' } },
      { url: 'rediss://a:s3cret@host', tls: { mode: 'off' } },
    ]
    for (const settings of wrong) {
      const { code, message } = failure(() => of(settings))
      expect(code, JSON.stringify(settings)).to.equal('REDIS_CONFIG_INVALID')
      expect(message).not.to.include('s3cret')
    }
    for (const settings of [{ use: ['lists'] }, { url: 7 }, { wait_ms: 1 }, { password: 'x' }])
      expect(config.check({ ...DEFAULTS, ...settings }).length, JSON.stringify(settings)).to.be.above(0)
  })
})
