import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type JsonSchema, schema } from '@svc/core'
import { checkBaseUrl, ENTRY, type KeyEntry, type KeyOptions, readKey, type UpstreamEntry } from '@svc/provider-http'
import { readKeyOf } from '@svc/provider-http/key'
import { expect } from 'chai'
import { failing } from './support/rig.ts'

describe('a base URL', () => {
  it('is cut into origin and path', () => {
    expect(checkBaseUrl('https://api.acme.example/v1/', 'acme')).to.deep.equal({
      origin: 'https://api.acme.example',
      path: '/v1',
    })
    expect(checkBaseUrl('http://[::1]:11434', 'acme')).to.deep.equal({ origin: 'http://[::1]:11434', path: '' })
  })

  for (const [text, words, hint] of [
    ['localhost:11434', /begins with http.*localhost:11434/, /Write http:\/\/localhost:11434\/v1/],
    ['nonsense', /begins with http/, /Write/],
    ['ftp://acme.example', /begins with http/, /Write/],
    ['https://me:sk-123456@acme.example', /user or password/, /api_key_env/],
    ['me:sk-123456@acme.example', /begins with http/, /Write/],
    ['acme.example/v1?key=sk-123456', /begins with http/, /Write/],
    ['https://acme.example/v1?key=sk-123456', /query or fragment/, /Remove/],
    ['https://acme.example/v1#sk-123456', /query or fragment/, /Remove/],
  ] as const)
    it(`is refused with the hint: ${text.slice(0, 20)}`, async () => {
      const error = await failing((async () => checkBaseUrl(text, 'acme'))())
      expect(error).to.include({ code: 'PROVIDER_CONFIG', where: 'providers.acme.base_url' })
      expect(error.message).to.match(words).and.not.include('sk-')
      expect(error.hint).to.match(hint)
    })
})

describe('the key of a provider', () => {
  const NAME = 'SVC_TEST_UPSTREAM_KEY'
  let folder: string
  before(async () => (folder = await mkdtemp(join(tmpdir(), 'svc-key-'))))
  after(() => rm(folder, { recursive: true }))
  afterEach(() => delete process.env[NAME])
  const file = async (text: string) => {
    const path = join(folder, 'key')
    await writeFile(path, text)
    return path
  }
  // nobody writes to it: who opens it would wait without end
  const pipe = async () => {
    const path = join(folder, 'pipe')
    await promisify(execFile)('mkfifo', [path])
    return path
  }
  const options = { provider: 'acme', defaultEnv: NAME, required: true }

  it('comes from the variable, the default one or the named one', async () => {
    process.env[NAME] = ' sk-1 \n'
    expect(await readKey({}, options)).to.equal('sk-1')
    expect(await readKey({ api_key_env: NAME }, { provider: 'acme', required: false })).to.equal('sk-1')
  })

  it('comes from a file, without the blanks round it', async () => {
    expect(await readKey({ api_key_file: await file('\n sk-2\r\n') }, options)).to.equal('sk-2')
  })

  it('may be absent where the server asks for none', async () => {
    expect(await readKey({}, { provider: 'acme', defaultEnv: NAME, required: false })).to.equal(undefined)
  })

  it('is missed in words, with what to do', async () => {
    const cases: readonly (readonly [KeyEntry, RegExp, KeyOptions?])[] = [
      [{}, /Set SVC_TEST_UPSTREAM_KEY/],
      [{}, /api_key_env/, { provider: 'acme', required: true }],
      [{ api_key_env: NAME }, /Set SVC_TEST/, { provider: 'acme', required: false }],
      [{ api_key_file: join(folder, 'none') }, /Correct the path/],
      [{ api_key_file: folder }, /file/],
      [{ api_key_file: await pipe() }, /only the key/],
      [{ api_key_file: await file('x'.repeat(20_000)) }, /only the key/],
      [{ api_key_env: NAME, api_key_file: 'x' }, /only one/],
    ]
    for (const [entry, hint, other] of cases) {
      const error = await failing(readKey(entry, other ?? options))
      expect(error).to.include({ code: 'PROVIDER_KEY', where: 'providers.acme' })
      expect(error.hint).to.match(hint)
      expect(`${error.message}${error.hint}`).not.to.include(folder)
    }
  })

  it('may be that of something else, by its place and the code of its error', async () => {
    const where = { where: 'tools.web.search', code: 'CONFIG_INVALID', required: false }
    expect(await readKeyOf({}, where)).to.equal(undefined)
    const error = await failing(readKeyOf({ api_key_env: NAME }, where))
    expect(error).to.include({ code: 'CONFIG_INVALID', where: 'tools.web.search' })
    expect(error.hint).to.include('tools.web.search.api_key_env')
  })

  for (const text of ['', '  \n', 'sk-1\nsk-2', 'sk 1', 'sk-ä'])
    it(`is no key, and is not reported: ${JSON.stringify(text)}`, async () => {
      const error = await failing(readKey({ api_key_file: await file(text) }, options))
      expect(error.code).to.equal('PROVIDER_KEY')
      expect(error.message).not.to.include('sk')
    })
})

describe('the entry of a provider', () => {
  const check = (value: unknown) =>
    schema<UpstreamEntry>({ type: 'object', properties: ENTRY, additionalProperties: false } as JsonSchema).check(value)

  it('takes models by id or with what they can do', () => {
    expect(
      check({ models: ['a', { id: 'b', context: 8, output: 2, tool_calling: false, vision: true, temperature: false }] })
    ).to.deep.equal([])
  })

  for (const bad of [
    { models: [] },
    { models: [{ context: 1 }] },
    { models: [{ id: 'a', size: 1 }] },
    { headers: { a: 'b\nc' } },
    { headers: { 'a b': 'c' } },
    { api_key_env: 'a b' },
    { base_url: '' },
  ])
    it(`refuses ${JSON.stringify(bad)}`, () => expect(check(bad)).not.to.deep.equal([]))
})
