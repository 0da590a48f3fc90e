import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { JsonSchema, Plugin } from '@svc/core'
import { expect } from 'chai'
import { precompiledOf, usePrecompiled } from '../../core/kernel/config/validator.ts'
import { DEFAULTS, SELECTABLE, selectedDefaults, WITH_COMMANDS } from '../src/curated.ts'
import { MANAGER } from '../src/summaries.ts'

const require = createRequire(import.meta.url)
const manifestOf = async (name: string) =>
  (JSON.parse(await readFile(require.resolve(`${name}/package.json`), 'utf8')) as { svc: Manifest }).svc
interface Manifest {
  readonly contributes?: { readonly commands?: readonly string[] }
  readonly runtime?: string
  readonly instances?: object
}
const manifests = await Promise.all(SELECTABLE.map(async name => ({ name, manifest: await manifestOf(name) })))
/** Those with code that this process runs. */
const CURATED = manifests.filter(({ manifest }) => manifest.runtime === undefined).map(({ name }) => name)
const pluginOf = async (name: string) => ((await import(name)) as { default: Plugin }).default
const defaultOf = (json: JsonSchema) => structuredClone((json as { readonly default?: unknown }).default ?? {})

describe('the curated plugins', () => {
  it('are listed if they add commands, so that help reads no other package.json', () => {
    const found = manifests.filter(({ manifest }) => manifest.contributes?.commands !== undefined)
    // svc finds the commands of the manager without a configuration
    expect([...WITH_COMMANDS, MANAGER]).to.have.members(found.map(({ name }) => name))
  })

  it('start without a configuration, each section checked by what the build has compiled of its schema', async () => {
    const plugins = await Promise.all(CURATED.map(async name => ({ name, ...(await pluginOf(name)) })))
    const needed = plugins.filter(
      plugin => plugin.section !== undefined || Object.keys(DEFAULTS.providers as object).includes(plugin.type ?? '')
    )
    const checked = needed.filter(plugin => plugin.config !== undefined)
    expect(checked.length).to.be.above(10)
    expect(checked.flatMap(({ config }) => config!.check(defaultOf(config!.json)))).to.deep.equal([])
    await using _build = await compiledByTheBuild()
    expect(
      checked.filter(({ config }) => !precompiledOf(config!.json, {})?.(defaultOf(config!.json))).map(plugin => plugin.name)
    ).to.deep.equal([])
  })

  it('say in their manifests which entries they are for, so that without one nothing of them is imported', async () => {
    const said = await Promise.all(
      CURATED.map(async name => {
        const { instances: section, type } = await pluginOf(name)
        return { name, code: section === undefined ? undefined : { section, type }, manifest: (await manifestOf(name)).instances }
      })
    )
    expect(said.filter(item => item.code).length).to.be.above(1)
    for (const { name, code, manifest } of said) expect(manifest, name).to.deep.equal(code)
  })
})

describe('the plugins that a configuration selects', () => {
  const of = (storeUrl?: unknown, redisUrl?: unknown, redisUse?: unknown, loaded = DEFAULTS.plugins as string[]) =>
    selectedDefaults({ storeUrl, loaded, redisUrl, redisUse })?.plugins as string[] | undefined
  const changes = (plugins: readonly string[] = []) => ({
    added: plugins.filter(name => !(DEFAULTS.plugins as string[]).includes(name)).map(name => name.slice(12)),
    removed: (DEFAULTS.plugins as string[]).filter(name => !plugins.includes(name)).map(name => name.slice(12)),
  })
  const REDIS = 'redis://cache.example'

  it('are the curated ones without a URL', () => {
    expect(of(undefined, undefined, ['counts'])).to.equal(undefined)
  })

  it('are those of PostgreSQL for any URL of the store, unless the configuration has another store', () => {
    for (const odd of ['postgres//x', 'mysql://x', 'file.db', '', 7, null, ['postgres://x']]) {
      expect(of(odd), String(odd)).to.include('@svc/plugin-store-postgres').and.not.include('@svc/plugin-store-sqlite')
      expect(of(odd, undefined, undefined, ['acme-store']), String(odd)).to.equal(undefined)
    }
    expect(of('postgres://db.example', undefined, undefined, [])).to.include('@svc/plugin-store-postgres')
  })

  it('are those of PostgreSQL, those of the uses of Redis, or both', () => {
    expect(changes(of('postgres://db.example'))).to.deep.equal({
      added: ['bus-postgres', 'queue-pgboss', 'store-postgres'],
      removed: ['bus-store', 'queue-store', 'store-sqlite'],
    })
    expect(changes(of(undefined, REDIS))).to.deep.equal({
      added: ['redis', 'counts-redis', 'cache-redis', 'bus-redis'],
      removed: ['bus-store', 'cache'],
    })
    expect(changes(of(undefined, REDIS, ['counts']))).to.deep.equal({ added: ['redis', 'counts-redis'], removed: [] })
    expect(changes(of(undefined, REDIS, ['queue']))).to.deep.equal({ added: ['redis', 'queue-bullmq'], removed: ['queue-store'] })
    expect(changes(of('postgres://db.example', REDIS, ['queue']))).to.deep.equal({
      added: ['bus-postgres', 'store-postgres', 'redis', 'queue-bullmq'],
      removed: ['bus-store', 'queue-store', 'store-sqlite'],
    })
    expect(changes(of(undefined, REDIS, []))).to.deep.equal({ added: ['redis'], removed: [] })
    expect(changes(of('postgresql://db.example', REDIS, ['bus', 'x']))).to.deep.equal({
      added: ['queue-pgboss', 'store-postgres', 'redis', 'bus-redis'],
      removed: ['bus-store', 'queue-store', 'store-sqlite'],
    })
  })
})

/** Takes schemas as the build compiles them, until it is disposed of. */
async function compiledByTheBuild(): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-validators-'))
  const file = join(folder, 'validators.cjs')
  const script = fileURLToPath(new URL('../../scripts/validators.ts', import.meta.url))
  await promisify(execFile)(process.execPath, ['--conditions=svc-source', script, file])
  usePrecompiled(file)
  return {
    async [Symbol.asyncDispose]() {
      usePrecompiled(undefined)
      await rm(folder, { recursive: true })
    },
  }
}
