import {
  configOf,
  type ConfigTree,
  definePlugin,
  formatError,
  type Manifest,
  planHost,
  type PluginEntry,
  schema,
  startHost,
} from '@svc/core'
import { type Secret, Secrets } from '@svc/core/contracts'
import { expect } from 'chai'

const VALUES: Readonly<Record<string, string>> = {
  key: 'canary-key-4711',
  url: 'https://api.example/canary',
  nested: '${secret:key}',
}

/** A provider of secrets that keeps these values, and notes who reads. */
function keeper(values = VALUES) {
  const reads: string[] = []
  const missing = (name: string) =>
    Object.assign(new Error(`there is no secret "${name}"`), { code: 'SECRET_UNKNOWN', name: 'SvcError' })
  const secrets: Secrets = {
    async read(name): Promise<Secret> {
      reads.push(name)
      if (!Object.hasOwn(values, name)) throw missing(name)
      return { value: values[name]!, version: '1' }
    },
    async *changes(name) {
      yield { version: name }
    },
    list: async () => [],
    set: async name => ({ name, source: 'sealed', state: 'ready' }),
    remove: async () => {},
    reseal: async () => ({ resealed: 0, keyId: '' }),
  }
  return { use: definePlugin({ provides: Secrets, setup: () => secrets }), name: 'svc-secrets', reads }
}

const SETTINGS = schema<{ url?: string; key?: string; list?: string[]; deep?: { at?: string } }>({
  type: 'object',
  additionalProperties: false,
  properties: {
    url: { type: 'string', pattern: '^https://', maxLength: 40 },
    key: { type: 'string', minLength: 3 },
    list: { type: 'array', items: { type: 'string' } },
    deep: { type: 'object', properties: { at: { enum: ['canary-key-4711'] } }, additionalProperties: false },
    other: { type: 'integer' },
  },
})

/** Starts a host in which a plugin has this section, and returns the configuration that its setup gets. */
async function settle(demo: unknown, { values, first = false }: { values?: typeof VALUES; first?: boolean } = {}) {
  let got: unknown
  const checked: unknown[] = []
  const user = {
    name: 'svc-demo',
    use: definePlugin({
      section: 'demo',
      config: SETTINGS,
      check: async config => (checked.push(config), []),
      setup: ({ config }) => void (got = config),
    }),
  }
  const { reads, ...secrets } = keeper(values)
  const plugins = first ? [user, secrets] : [secrets, user]
  await using _host = await startHost({ plugins, config: { demo } as ConfigTree, log: { level: 'silent' } })
  return { got, reads, checked }
}

const failed = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('expected a failed start'),
    (error: unknown) => formatError(error)
  )

describe('a reference to a secret in the configuration', () => {
  it('becomes the value in any text, whatever the order of the plugins', async () => {
    for (const first of [false, true]) {
      const demo = {
        url: '${secret:url}',
        key: 'a-${secret:key}-${secret:key}',
        list: ['${secret:key}'],
        deep: { at: '${secret:key}' },
      }
      const { got, reads, checked } = await settle(demo, { first })
      expect(got).to.deep.equal({
        url: VALUES.url,
        key: `a-${VALUES.key}-${VALUES.key}`,
        list: [VALUES.key],
        deep: { at: VALUES.key },
      })
      expect(reads.sort(), 'each is read once').to.deep.equal(['key', 'url'])
      expect(checked, 'the check gets the final configuration').to.deep.equal([got])
    }
  })

  it('is not looked for in a secret, and not written twice', async () => {
    const { got, reads } = await settle({ key: '${secret:nested}' })
    expect([got, reads]).to.deep.equal([{ key: '${secret:key}' }, ['nested']])
    expect((await settle({ key: '$${secret:key}' })).got).to.deep.equal({ key: '${secret:key}' })
    expect((await settle({ key: '$${secret:key} ${secret:key}' })).got).to.deep.equal({ key: '${secret:key} canary-key-4711' })
  })

  it('must name one secret', async () => {
    for (const text of [
      '${secret:}',
      '${secret:${env:X}}',
      '${secret:../x}',
      '${secret:a b}',
      '${secret:key',
      '${secret:__proto__}',
    ]) {
      const error = await failed(settle({ key: text }))
      expect(error, text).to.include('CONFIG_REFERENCE_INVALID').and.include('demo.key')
      expect(error).to.include('given')
    }
  })

  it('reports all missing secrets with their places, and no value', async () => {
    const error = await failed(settle({ url: '${secret:gone}', key: '${secret:constructor}', list: ['${secret:key}'] }))
    expect(error).to.include('SECRET_UNKNOWN').and.include('demo.url').and.include('demo.key').and.not.include('canary')
  })

  it('is validated with its value, which the error does not show', async () => {
    const error = await failed(settle({ url: '${secret:key}' }))
    expect(error).to.include('demo.url must match').and.not.include('canary')
    expect(await failed(settle({ deep: { at: 'x${secret:key}' } })))
      .to.include('demo.deep.at must be one of')
      .and.not.include('xcanary')
  })

  it('does not hide other problems of the section', async () => {
    const { reads: _reads, ...secrets } = keeper()
    const plan = await planHost({
      plugins: [secrets, { name: 'svc-demo', use: definePlugin({ section: 'demo', config: SETTINGS, setup() {} }) }],
      config: configOf({ demo: { url: '${secret:key}', other: '${secret:key}', unknown: 1, list: 'x' } }),
    })
    const texts = plan.problems.map(problem => problem.message)
    expect(texts.join('\n')).to.include('demo.unknown').and.include('demo.list').and.not.include('demo.url')
  })

  it('needs a plugin that provides secrets and starts before', async () => {
    const use = definePlugin({ section: 'demo', config: SETTINGS, setup() {} })
    const config = { demo: { key: '${secret:key}' } }
    const alone = startHost({ plugins: [{ name: 'svc-demo', use }], config })
    expect(await failed(alone))
      .to.include('CONFIG_REFERENCE_UNPROVIDED')
      .and.include('demo.key')
    const { use: _use, reads: _reads, ...named } = keeper()
    const needy = {
      ...named,
      use: definePlugin({ section: 'demo', config: SETTINGS, provides: Secrets, setup: () => null as never }),
    }
    expect(await failed(startHost({ plugins: [needy], config }))).to.include('CONFIG_REFERENCE_TOO_EARLY')
  })
})

/** Starts a host with a plugin with these permissions, and returns the secrets as it sees them. */
async function openAs(permissions: Manifest['permissions'] | undefined, accepted?: Manifest['permissions']) {
  let secrets: Secrets | undefined
  const { reads, ...provider } = keeper()
  const use = definePlugin({ requires: { secrets: Secrets }, setup: (_scope, given) => void (secrets = given.secrets) })
  const manifest = { api: 1, kind: 'x', ...(permissions ? { permissions } : {}) }
  const entry: PluginEntry = {
    use,
    name: 'svc-user',
    ...(permissions ? { manifest } : {}),
    ...(accepted ? { permissions: accepted } : {}),
  }
  const host = await startHost({ plugins: [entry, provider], log: { level: 'silent' } })
  return { secrets: secrets!, reads, [Symbol.asyncDispose]: () => host.close() }
}

const ctx = { signal: new AbortController().signal, principal: { id: 'system', scopes: ['*'] }, requestId: 'test' }

/** Names with which a plugin could try to reach the secret `key`. */
const TRICKS: readonly unknown[] = [
  'KEY',
  'key ',
  ' key',
  'key\0',
  'key\n',
  'k\u200bey',
  'ｋey',
  '../key',
  './key',
  '*',
  '',
  '__proto__',
  'x'.repeat(10_000),
  ['key'],
  { toString: () => 'key' },
  new String('key'),
  null,
  undefined,
  0,
]

describe('a plugin that names secrets', () => {
  it('reads these and no others, whatever name it tries', async () => {
    await using run = await openAs({ secrets: ['url'] })
    expect((await run.secrets.read('url', ctx)).value).to.equal(VALUES.url)
    for (const name of ['key', ...TRICKS] as readonly string[]) {
      const error = await run.secrets.read(name, ctx).catch((thrown: unknown) => thrown)
      expect((error as { code?: string }).code, String(name)).to.equal('NOT_PERMITTED')
      expect((error as Error).message.length).to.be.below(200)
      const changes = await Array.fromAsync(run.secrets.changes(name, ctx)).catch((thrown: unknown) => thrown)
      expect((changes as { code?: string }).code).to.equal('NOT_PERMITTED')
    }
    expect(run.reads, 'the provider sees no other name').to.deep.equal(['url'])
  })

  it('cannot list, set, remove or seal secrets', async () => {
    await using run = await openAs({ secrets: ['url'] })
    const { secrets } = run
    for (const work of [
      () => secrets.list(ctx),
      () => secrets.set('url', 'x', ctx),
      () => secrets.remove('url', ctx),
      () => secrets.reseal(ctx),
    ])
      expect(
        await work().then(
          () => 'done',
          error => (error as { code: string }).code
        )
      ).to.equal('NOT_PERMITTED')
  })

  it('goes by what was accepted, not by what its manifest asks for', async () => {
    await using run = await openAs({ secrets: ['url', 'key'], services: ['*'] }, { secrets: ['url'] })
    expect((await run.secrets.read('url', ctx)).value).to.equal(VALUES.url)
    expect(
      await run.secrets.read('key', ctx).then(
        () => 'done',
        error => (error as { code: string }).code
      )
    ).to.equal('NOT_PERMITTED')
    expect(
      await run.secrets.list(ctx).then(
        () => 'done',
        error => (error as { code: string }).code
      )
    ).to.equal('NOT_PERMITTED')
  })

  it('reads no secret with the permission for the whole service, or without any', async () => {
    await using manager = await openAs({ services: ['secrets'] })
    expect(await manager.secrets.list(ctx)).to.deep.equal([])
    await using bare = await openAs(undefined)
    for (const { secrets } of [manager, bare])
      expect(
        await secrets.read('key', ctx).then(
          () => 'done',
          error => (error as { code: string }).code
        )
      ).to.equal('NOT_PERMITTED')
  })
})
