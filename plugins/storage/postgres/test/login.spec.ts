import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { asSvcError, shownPath, type SvcError } from '@svc/core'
import { type Postgres, startPostgres } from '@svc/testing/engines'
import { expect } from 'chai'
import { describeWith } from '../../../../test/support/needs.ts'
import type { PostgresConfig } from '../src/config.ts'
import { newSchema, storeWith } from './support.ts'

describeWith('postgres', 'a login of store-postgres that fails', () => {
  const stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'svc-login-'))
  let postgres: Postgres
  before(async () => (postgres = stack.use(await startPostgres())))
  after(async () => {
    await stack.disposeAsync()
    rmSync(folder, { recursive: true })
  })

  const failure = async (config: Partial<PostgresConfig>): Promise<SvcError> => {
    await using store = storeWith({ schema: newSchema(), wait_ms: 30_000, ...config })
    try {
      await store.start()
    } catch (error) {
      return asSvcError(error, 'FOREIGN')
    }
    throw new Error('it started')
  }
  const server = () => `127.0.0.1:${postgres.port}`
  const urlOf = (user: string, name = 'postgres') => `postgres://${user}@${server()}/${name}`

  it('names the user, and the setting that has given the password', async () => {
    const file = join(folder, 'password')
    writeFileSync(file, 'wrong-8d1f\n')
    process.env.SVC_TEST_LOGIN = 'wrong-8d1f'
    const given: [Partial<PostgresConfig>, string][] = [
      [{ url: urlOf('anna'), password_file: file }, 'store.password_file'],
      [{ url: urlOf('anna'), password_env: 'SVC_TEST_LOGIN' }, 'store.password_env'],
      [{ url: urlOf('anna'), password_command: ['cat', file] }, 'store.password_command'],
      [{ url: urlOf('anna:wrong-8d1f') }, 'store.url'],
    ]
    for (const [config, key] of given) {
      const { code, message, hint } = await failure(config)
      expect([code, message]).to.deep.equal([
        'STORE_UNAVAILABLE',
        `PostgreSQL rejected the password of the user "anna" (${server()})`,
      ])
      expect(hint).to.equal(`Check the user, and the password in ${key}`)
    }
    delete process.env.SVC_TEST_LOGIN
  })

  it('names the database', async () => {
    const { message, hint } = await failure({ url: `${postgres.url.replace(/postgres$/, '')}shop%0aone` })
    expect(message).to.equal(`the database "shop\\none" does not exist (${server()})`)
    expect(hint).to.equal('Create it, or change store.url')
  })

  it('says why the file with the password cannot be read, and keeps its path out of the message', async () => {
    const reasons: [string, string][] = [
      [join(folder, 'nothing'), 'the file does not exist'],
      [folder, 'it is a folder'],
      [join(folder, 'password', 'x'), 'a part of the path is not a folder'],
    ]
    for (const [path, reason] of reasons) {
      const { code, message, where, details } = await failure({ url: urlOf('anna'), password_file: path })
      expect(code).to.equal('STORE_UNAVAILABLE')
      expect(message).to.equal(`there is no password for PostgreSQL: store.password_file cannot be read: ${reason}`)
      expect(where).to.equal(shownPath(path))
      expect(JSON.stringify(details)).to.not.include(folder)
    }
  })

  it('fails at once when TLS is wanted and the server has none', async () => {
    for (const config of [
      { url: `${postgres.url}?sslmode=require` },
      { url: postgres.url, tls: { mode: 'verified' as const } },
    ]) {
      const began = performance.now()
      const { message, hint } = await failure(config)
      expect(message).to.equal(`PostgreSQL offers no TLS (${server()})`)
      expect(hint).to.include('set store.tls.mode to off')
      expect(performance.now() - began).to.be.below(15_000)
    }
  })
})
