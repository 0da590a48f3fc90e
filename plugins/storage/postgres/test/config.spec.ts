// Not a unit test: a password can come from a command.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, messageOf } from '@svc/core'
import { expect } from 'chai'
import { connectionOf, type PostgresConfig, withDefaults } from '../src/config.ts'
import { problemOf } from '../src/connections.ts'
import { cutPosition } from '../src/places.ts'

const of = (config: Partial<PostgresConfig>) => connectionOf(withDefaults(config))
const passwordOf = async (config: Partial<PostgresConfig>) => {
  const { password } = of(config).target
  return typeof password === 'function' ? password() : password
}
const failure = (work: () => unknown) => {
  try {
    work()
  } catch (error) {
    return { code: codeOf(error), message: messageOf(error), hint: (error as { hint?: string }).hint }
  }
  throw new Error('it did not fail')
}

describe('the section store of store-postgres', () => {
  it('reads hosts, user, database and password of a URL', () => {
    const { target, direct } = of({
      url: 'postgres://ann:p%40ss@one:5433,[::1],two/my%20db',
      direct_url: 'postgresql://localhost/x',
    })
    expect(target).to.deep.include({
      hosts: [
        { host: 'one', port: 5433 },
        { host: '::1', port: 5432 },
        { host: 'two', port: 5432 },
      ],
      user: 'ann',
      password: 'p@ss',
      database: 'my db',
    })
    expect(direct).to.deep.include({ hosts: [{ host: 'localhost', port: 5432 }], database: 'x' })
    expect(of({ url: 'postgres:///db?host=/run/postgresql' }).target.hosts).to.deep.equal([
      { host: '/run/postgresql', port: 5432 },
    ])
  })

  it('verifies certificates of other machines, unless the configuration says otherwise', () => {
    expect(of({ url: 'postgres://localhost/a' }).target.ssl).to.equal(false)
    expect(of({ url: 'postgres://db.example/a' }).target.ssl).to.deep.equal({ rejectUnauthorized: true })
    expect(of({ url: 'postgres://db.example/a?sslmode=require' }).target.ssl).to.deep.equal({ rejectUnauthorized: false })
    expect(of({ url: 'postgres://db.example/a', tls: { mode: 'off' } }).target.ssl).to.equal(false)
    expect(of({ url: 'postgres://localhost/a', tls: { server_name: 'x' } }).target.ssl).to.deep.equal({
      rejectUnauthorized: true,
      servername: 'x',
    })
  })

  it('rejects what is wrong, without a value of the configuration', () => {
    const wrong: Partial<PostgresConfig>[] = [
      {},
      { url: 'mysql://s3cret@host' },
      { url: 'postgres://a:s3cret@host:99999/x' },
      { url: 'postgres://a:s3cret%zz@host/x' },
      { url: 'postgres://a:s3cret@host/x?sslmode=sometimes' },
      { url: 'postgres://a@host/x?s3cret_option=1'.replace('s3cret_', '') },
      { url: 'postgres://a:s3cret@host/x', password_env: 'PW' },
      { url: 'postgres://a@host/x', tls: { ca_file: '/nowhere/s3cret' } },
      { url: 'postgres://a@host/x', readers: 'two' as never },
      { path: 's3cret' } as never,
    ]
    for (const config of wrong) {
      const { code, message } = failure(() => of(config))
      expect(code).to.equal('STORE_CONFIG_INVALID')
      expect(message).not.to.include('s3cret')
    }
  })

  it('names how a wrong URL begins, and nothing behind', () => {
    const begins: [string, string][] = [
      ['postgres//a:s3cret@host/x', ', but begins with postgres//'],
      ['postgres:/a:s3cret@host/x', ', but begins with postgres:/'],
      ['Postgres://a:s3cret@host/x', ', but begins with Postgres://'],
      ['mysql://a:s3cret@host/x', ', but begins with mysql://'],
      ['jdbc:postgresql://s3cret', ''],
      ['sqlite:/s3cret/x.db', ', but begins with sqlite:/'],
      ['sqlite:///s3cret/x.db', ', but begins with sqlite://'],
      ['sqlite:s3cret.db', ', but begins with sqlite:'],
      ['s3cret:s3cret@host/x', ''],
      ['s3cret@host/x', ''],
      ['/s3cret/x.db', ''],
      ['s3cret', ''],
      ['\u001b[31mpostgres://s3cret', ''],
    ]
    for (const name of ['url', 'direct_url'] as const)
      for (const [url, begin] of begins) {
        const { code, message, hint } = failure(() => of({ url: 'postgres://host/x', [name]: url }))
        expect(code).to.equal('STORE_CONFIG_INVALID')
        expect(message).to.equal(`store.${name} must begin with postgres:// or postgresql://${begin}`)
        const file = name === 'url' ? '. For a file of SQLite, remove store.url and set store.path' : ''
        expect(hint).to.equal(`Write postgres://user@host:5432/name${file}`)
      }
  })

  it('reads the password from a variable, a file or a command, for each connection', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-password-'))
    const file = join(folder, 'password')
    try {
      const url = 'postgres://a@localhost/x'
      for (const text of ['first one\n', 'second one']) {
        writeFileSync(file, text)
        expect(await passwordOf({ url, password_file: file })).to.equal(text.trim())
        expect(await passwordOf({ url, password_command: ['cat', file] })).to.equal(text.trim())
      }
      process.env.SVC_TEST_PASSWORD = 'of a variable'
      expect(await passwordOf({ url, password_env: 'SVC_TEST_PASSWORD' })).to.equal('of a variable')
      delete process.env.SVC_TEST_PASSWORD
      const script = join(folder, 'fails')
      writeFileSync(script, '#!/bin/sh\necho s3cret\necho s3cret >&2\nexit 1\n')
      chmodSync(script, 0o700)
      for (const config of [
        { password_command: [script] },
        { password_file: `${file}2` },
        { password_env: 'SVC_TEST_PASSWORD' },
      ]) {
        const error: unknown = await passwordOf({ url, ...config }).catch((thrown: unknown) => thrown)
        expect(codeOf(error)).to.equal('STORE_UNAVAILABLE')
        expect(JSON.stringify([messageOf(error), (error as Error).cause])).not.to.include('s3cret')
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('adds up connections', () => {
    const usage = { allowed: 20, used: 4, stores: 4, others: 3 }
    expect(problemOf(usage, 5)).to.deep.equal({
      sum: '4 × 5 for workers and commands of svc + 3 others = 23, but PostgreSQL allows 20',
      isFatal: false,
    })
    expect(problemOf({ ...usage, used: 18 }, 5)).to.include({ isFatal: true })
    expect(problemOf({ ...usage, stores: 3 }, 5)).to.equal(undefined)
  })
})

describe('the head and the tail of a position', () => {
  it('sort like the whole by the bytes of UTF-8', () => {
    const long = 'é'.repeat(498)
    const positions = [
      '',
      'a',
      long,
      `${long}😀`,
      `${long}a😀`,
      `${long}aa`,
      `${long}aab`,
      `${long}😀b`,
      `${long}\uffff`,
      `${long}aa😀`,
    ]
    const whole = positions.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    const cut = positions.toSorted((a, b) => {
      const [left, right] = [cutPosition(a), cutPosition(b)]
      return (
        Buffer.compare(Buffer.from(left[0]), Buffer.from(right[0])) || Buffer.compare(Buffer.from(left[1]), Buffer.from(right[1]))
      )
    })
    expect(cut).to.deep.equal(whole)
    for (const position of positions) {
      expect(cutPosition(position).join('')).to.equal(position)
      expect(Buffer.byteLength(cutPosition(position)[0])).to.be.at.most(2000)
    }
  })
})
