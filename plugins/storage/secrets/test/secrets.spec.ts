import { randomBytes } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { codeOf, definePlugin, formatError, systemContext } from '@svc/core'
import { Checks, type Json, Secrets, Store } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const PLUGIN = { name: '@svc/plugin-secrets', use: new URL('..', import.meta.url) }
const ctx = systemContext(new AbortController().signal, 'test')
const VALUE = 'canary-value-0123456789'
const newKey = () => randomBytes(32).toString('base64')

/** A store in memory, a folder, and hosts with secrets over both. */
async function openPlace() {
  const folder = await mkdtemp(join(tmpdir(), 'svc-secrets-'))
  const at = (name: string) => join(folder, name)
  const memory = await testHost([{ name: '@svc/plugin-store-memory', use: pluginFolder('store-memory') }], { strict: false })
  const store = memory.service(Store)
  const lines: string[] = []
  const open = (secrets: object = { key_file: at('key') }) =>
    testHost([PLUGIN], {
      config: { secrets: { ...secrets } },
      log: { level: 'warn', destination: { write: line => void lines.push(line) } },
      give: [{ name: 'test:store', use: definePlugin({ provides: Store, setup: () => store }) }],
    })
  await writeFile(at('key'), newKey(), { mode: 0o600 })
  return {
    at,
    store,
    open,
    log: () => lines.join(''),
    async [Symbol.asyncDispose]() {
      await memory.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const failed = (work: Promise<unknown>): Promise<{ code: string | undefined; text: string }> =>
  work.then(
    value => expect.fail(`expected an error, got ${JSON.stringify(value)}`),
    (error: unknown) => ({ code: codeOf(error), text: formatError(error) })
  )

describe('a sealed secret', () => {
  it('is in no record of the store in clear', async () => {
    await using place = await openPlace()
    await using host = await place.open()
    await host.service(Secrets).set('token', VALUE, ctx)
    const { records } = await place.store.range('secrets', { limit: 10 }, ctx)
    expect(JSON.stringify(records)).to.not.include(VALUE).and.not.include(Buffer.from(VALUE).toString('base64').slice(0, 20))
  })

  it('does not open under another name, or after a change of any part', async () => {
    await using place = await openPlace()
    await using host = await place.open()
    const secrets = host.service(Secrets)
    await secrets.set('token', VALUE, ctx)
    await secrets.set('public', 'a public value', ctx)
    const { value } = (await place.store.get('secrets', 'token', ctx))!
    const record = value as Readonly<Record<string, string>>
    const write = (key: string, changed: Json) =>
      place.store.batch([{ op: 'put', collection: 'secrets', key, value: changed }], {}, ctx)
    await write('public', record)
    expect(await failed(secrets.read('public', ctx))).to.deep.include({ code: 'SECRET_UNREADABLE' })
    const flipped = (text = '') => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`
    for (const change of [
      ...['iv', 'tag', 'data', 'key_id'].map(part => ({ ...record, [part]: flipped(record[part]) })),
      ...['iv', 'tag', 'data'].map(part => ({ ...record, [part]: '' })),
      { ...record, tag: record.tag?.slice(0, 8) },
    ]) {
      await write('token', change as Json)
      const { code, text } = await failed(secrets.read('token', ctx))
      expect(code, text).to.equal('SECRET_UNREADABLE')
    }
    expect((await secrets.list(ctx)).map(({ state }) => state)).to.deep.equal(['unreadable', 'unreadable'])
  })

  it('needs its key: another or none is an error that names both keys and no value', async () => {
    await using place = await openPlace()
    await using first = await place.open()
    await first.service(Secrets).set('token', VALUE, ctx)
    await writeFile(place.at('other'), newKey())
    await using second = await place.open({ key_file: place.at('other') })
    const wrong = await failed(second.service(Secrets).read('token', ctx))
    expect(wrong.text).to.match(/SECRET_UNREADABLE[^]*sealed with the key [\da-f]{12}, and the configured key is [\da-f]{12}/)
    await using third = await place.open({})
    const none = await failed(third.service(Secrets).read('token', ctx))
    expect(none.text).to.include('SECRETS_KEY_MISSING').and.include('openssl rand -base64 32').and.include('secrets.key_file')
    expect(place.log()).to.include('not readable: token').and.not.include(VALUE)
  })

  it('refuses keys that are not 32 random bytes, without repeating them', async () => {
    await using place = await openPlace()
    for (const text of [
      '',
      'short',
      'A'.repeat(43),
      '0'.repeat(64),
      'x'.repeat(10_000),
      '\0',
      newKey().slice(2),
      Array(17).fill(newKey()).join('\n'),
    ]) {
      await writeFile(place.at('bad'), text)
      await using host = await place.open({ key_file: place.at('bad') })
      const { code, text: said } = await failed(host.service(Secrets).set('token', VALUE, ctx))
      expect(code, text.slice(0, 20)).to.equal('SECRETS_KEY_INVALID')
      if (text.length > 4) expect(said).to.not.include(text.trim().slice(0, 20))
    }
    await using gone = await place.open({ key_file: place.at('gone') })
    expect((await failed(gone.service(Secrets).set('token', VALUE, ctx))).text)
      .to.include('does not exist')
      .and.not.include(place.at(''))
  })

  it('is sealed again with a new key in the running host, and the old key is then not needed', async () => {
    await using place = await openPlace()
    await using host = await place.open()
    const secrets = host.service(Secrets)
    const [oldKey, nextKey] = [newKey(), newKey()]
    await writeFile(place.at('key'), `# the key\n${oldKey}\n`)
    await secrets.set('token', VALUE, ctx)
    const { keyId: before } = (await secrets.list(ctx))[0]!
    await writeFile(place.at('key'), `${nextKey}\n${oldKey}\n`)
    const { resealed, keyId } = await secrets.reseal(ctx)
    expect([resealed, keyId === before]).to.deep.equal([1, false])
    await writeFile(place.at('key'), nextKey)
    expect((await secrets.read('token', ctx)).value).to.equal(VALUE)
    expect(await secrets.reseal(ctx)).to.deep.equal({ resealed: 0, keyId })
  })

  it('is sealed again with all others or not at all', async () => {
    await using place = await openPlace()
    await using host = await place.open()
    const secrets = host.service(Secrets)
    await secrets.set('a', VALUE, ctx)
    await writeFile(place.at('key'), newKey())
    await secrets.set('b', VALUE, ctx)
    await writeFile(place.at('key'), newKey())
    expect((await failed(secrets.reseal(ctx))).code).to.equal('SECRET_UNREADABLE')
  })
})

describe('a secret with a source', () => {
  it('comes from a variable or file, without one line break at the end, and is never stored', async () => {
    await using place = await openPlace()
    process.env.SVC_TEST_SECRET = `${VALUE}-env`
    await writeFile(place.at('value'), `${VALUE}\nmore\n\r\n`, { mode: 0o600 })
    await symlink(place.at('value'), place.at('link'))
    const sources = { variable: { env: 'SVC_TEST_SECRET' }, file: { file: place.at('value') }, link: { file: place.at('link') } }
    await using host = await place.open({ sources })
    const secrets = host.service(Secrets)
    expect((await secrets.read('variable', ctx)).value).to.equal(`${VALUE}-env`)
    for (const name of ['file', 'link']) expect((await secrets.read(name, ctx)).value).to.equal(`${VALUE}\nmore\n`)
    expect((await place.store.range('secrets', { limit: 10 }, ctx)).records).to.deep.equal([])
    expect((await failed(secrets.set('file', 'x', ctx))).code).to.equal('SECRET_CONFIGURED')
    expect((await failed(secrets.remove('variable', ctx))).text).to.include('the variable SVC_TEST_SECRET')
    await writeFile(place.at('value'), 'a newer value')
    expect((await secrets.read('file', ctx)).value, 'a changed file takes effect at once').to.equal('a newer value')
    delete process.env.SVC_TEST_SECRET
  })

  it('must be a readable text file: no folder, pipe, device or large file blocks or passes', async () => {
    await using place = await openPlace()
    await mkdir(place.at('folder'))
    execFileSync('mkfifo', [place.at('pipe')])
    await writeFile(place.at('large'), 'x'.repeat(65_537))
    await writeFile(place.at('binary'), Buffer.from([0xff, 0xfe, 0xff]))
    await writeFile(place.at('empty'), '\n')
    const files = {
      folder: 'folder',
      pipe: 'pipe',
      large: 'large',
      binary: 'binary',
      empty: 'empty',
      gone: 'gone',
      zero: '/dev/zero',
    }
    const sources = Object.fromEntries(
      Object.entries(files).map(([name, file]) => [name, { file: file.startsWith('/') ? file : place.at(file) }])
    )
    await using host = await place.open({ sources: { ...sources, unset: { env: 'SVC_TEST_UNSET' } } })
    for (const name of [...Object.keys(files), 'unset']) {
      const { code, text } = await failed(host.service(Secrets).read(name, ctx))
      expect(code, name).to.equal('SECRET_UNREADABLE')
      expect(text, name).to.include(`"${name}"`).and.not.include(place.at(''))
    }
    expect((await host.service(Secrets).list(ctx)).every(({ state }) => state === 'missing')).to.equal(true)
  })

  it('brings a warning when all users can read its file or the key', async () => {
    await using place = await openPlace()
    await writeFile(place.at('value'), VALUE)
    await chmod(place.at('value'), 0o644)
    await chmod(place.at('key'), 0o644)
    await using host = await place.open({ key_file: place.at('key'), sources: { open: { file: place.at('value') } } })
    const { status, reason } = await host.slot(Checks).get('secrets')!.probe(ctx)
    expect([status, reason]).to.deep.equal([
      'degraded',
      'all users of this machine can read the files of open; remove that right with chmod; all users of this machine can read secrets.key_file; remove that right with chmod',
    ])
    expect(place.log()).to.include('the files of open').and.not.include(VALUE)
  })

  it('is configured by one source under a valid name', async () => {
    await using place = await openPlace()
    for (const sources of [{ '../x': { env: 'A' } }, { a: { env: 'A', file: 'b' } }, { a: {} }, { a: { env: '' } }, { a: 'x' }])
      expect((await failed(place.open({ sources }))).text, JSON.stringify(sources)).to.include('CONFIG_')
  })
})
