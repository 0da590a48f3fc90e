import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { SvcError } from '@svc/core'
import { Providers } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'
import { moduleAt } from './support/modules.ts'
import { CANARY, endlessContext, failureOf, KEY_ENV } from './support/rig.ts'

const PLUGIN = new URL('..', import.meta.url)
const OPENAI = { package: '@ai-sdk/openai' }

/** The problems that a start with this entry ends with. */
async function problemsOf(entry: object): Promise<readonly SvcError[]> {
  const starting = testHost([PLUGIN], { config: { providers: { mine: { type: 'ai-sdk', ...entry } } } })
  const error = await failureOf(starting.then(host => host.close()))
  return (error as SvcError & { problems: readonly SvcError[] }).problems
}
async function problemOf(entry: object): Promise<SvcError> {
  const [problem = expect.fail('no problem'), ...others] = await problemsOf(entry)
  expect(others).to.deep.equal([])
  return problem
}

describe('a start with provider-ai-sdk', () => {
  beforeEach(() => {
    process.env[KEY_ENV] = CANARY
  })

  it('fails where the package is not installed, with the command that installs it', async () => {
    const problem = await problemOf({ package: '@ai-sdk/absent' })
    expect(problem).to.include({ code: 'PROVIDER_PACKAGE' })
    expect(problem.message).to.include('"@ai-sdk/absent"')
    expect(problem.hint).to.include('npm install @ai-sdk/absent')
  })

  it('fails where no package is named', async () => {
    expect((await problemOf({})).message).to.include('package')
  })

  for (const version of ['v1', 'v5', 7, undefined])
    it(`fails where the package speaks version ${version}, with the version to install`, async () => {
      const problem = await problemOf({ package: moduleAt('./scripted.ts'), options: { version: version ?? null } })
      expect(problem.message).to.match(/has version (v1|v5|none) of the AI SDK's provider interface, not v4, v3, v2/)
      expect(problem.hint).to.include('@ai-sdk/provider 4, 3 or 2')
    })

  it('names the major of a well-known package that is too old', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-ai-sdk-'))
    const home = process.env.SVC_HOME
    try {
      process.env.SVC_HOME = folder
      const there = join(folder, 'node_modules', '@ai-sdk', 'groq')
      await mkdir(there, { recursive: true })
      await writeFile(
        join(there, 'package.json'),
        '{"name":"@ai-sdk/groq","version":"1.2.9","type":"module","exports":"./index.js"}'
      )
      await writeFile(
        join(there, 'index.js'),
        `export const createGroq = () => ({ languageModel: () => ({ specificationVersion: 'v1' }) })`
      )
      const problem = await problemOf({ package: '@ai-sdk/groq' })
      expect(problem.message).to.include('@ai-sdk/groq 1.2.9 has version v1')
      expect(problem.hint).to.equal('Install version 4: npm install @ai-sdk/groq@4')
    } finally {
      if (home === undefined) delete process.env.SVC_HOME
      else process.env.SVC_HOME = home
      await rm(folder, { recursive: true })
    }
  })

  it('fails where a maker is ambiguous, with the names to choose from', async () => {
    const problem = await problemOf({ package: moduleAt('./exports.ts') })
    expect(problem.hint).to.include('createOne').and.include('createTwo')
    for (const wrong of ['createNothing', 'ready', 'word', 'absent', 'createOne.image'])
      expect((await problemOf({ package: moduleAt('./exports.ts'), export: wrong })).message).to.include(`"${wrong}"`)
  })

  it('fails where the package cannot be imported, without a path of this machine', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-ai-sdk-'))
    try {
      const file = join(folder, 'broken.mjs')
      await writeFile(file, "import 'nothing-of-this-name'")
      const problem = await problemOf({ package: file })
      expect(problem.code).to.equal('SETUP_FAILED')
      expect(problem.message.replaceAll(`"${file}"`, ''))
        .to.include('nothing-of-this-name')
        .and.not.include(folder)
      expect(problem.message).to.not.include(pathToFileURL(folder).href)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('fails where the maker refuses its options, without the key', async () => {
    const problem = await problemOf({
      package: moduleAt('./scripted.ts'),
      options: { refuses: `not ${CANARY}` },
      api_key_env: KEY_ENV,
    })
    expect(problem.message).to.include('not [secret]')
  })

  it('fails where the base URL is none, or has credentials in it', async () => {
    for (const base_url of ['localhost:1234', 'ftp://localhost', 'http://user:secret@localhost', 'http://localhost/?key=1']) {
      const problem = await problemOf({ ...OPENAI, base_url })
      expect(problem.message).to.include('providers.mine.base_url').and.not.include('secret')
    }
  })

  it('fails where a key stands in the configuration, or is not where the entry says', async () => {
    for (const options of [{ apiKey: CANARY }, { api_key: CANARY }, { nested: [{ secretAccessKey: CANARY }] }]) {
      const problem = await problemOf({ ...OPENAI, options })
      expect(problem.message)
        .to.match(/options\.(\w+\.)*\w+ looks like a secret/)
        .and.not.include(CANARY)
    }
    expect((await problemOf({ ...OPENAI, api_key_env: 'SVC_TEST_NOT_SET' })).message).to.include('SVC_TEST_NOT_SET')
  })

  it('has the models of its entry, and any where the entry names none', async () => {
    const models = ['one', { id: 'two', context: 100, vision: false }]
    await using host = await testHost([PLUGIN], {
      config: { providers: { listed: { type: 'ai-sdk', ...OPENAI, models }, open: { type: 'ai-sdk', ...OPENAI } } },
    })
    const providers = host.slot(Providers)
    expect(await providers.get('listed')?.models(endlessContext())).to.deep.equal({
      models: [{ id: 'one' }, { id: 'two', context: 100, features: { vision: false } }],
      open: false,
    })
    expect(await providers.get('open')?.models(endlessContext())).to.deep.equal({ models: [], open: true })
  })

  it('tells which key is missing when a model is asked, where neither the entry nor the package has one', async () => {
    const before = process.env.OPENAI_API_KEY
    delete process.env.OPENAI_API_KEY
    try {
      await using host = await testHost([PLUGIN], { config: { providers: { mine: { type: 'ai-sdk', ...OPENAI } } } })
      const request = { model: 'any', messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }] } as const
      const error = await failureOf(Array.fromAsync(host.slot(Providers).get('mine')!.chat(request, endlessContext())))
      expect(error.details).to.include({ kind: 'authentication', retryable: false })
      expect(error.hint).to.include('providers.mine.api_key_env')
    } finally {
      if (before !== undefined) process.env.OPENAI_API_KEY = before
    }
  })
})
