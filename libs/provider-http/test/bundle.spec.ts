import { execFile } from 'node:child_process'
import { cp, glob, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openUpstream } from '@svc/testing'
import { expect } from 'chai'
import { build as esbuild } from 'esbuild'
import { build as rolldown } from 'rolldown'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const run = promisify(execFile)

/** A program that asks an upstream, as the bundle of a plugin does. */
const PROGRAM = `import { createUpstream } from '@svc/provider-http'
const upstream = createUpstream({ provider: 'acme', baseUrl: process.argv[2], headers: {}, secrets: [] })
const ctx = { signal: AbortSignal.timeout(10_000), requestId: 'a', principal: { id: 'a', scopes: [] } }
console.log(JSON.stringify(await upstream.json('GET', '/', undefined, ctx)))
await upstream.close()
`

/** A bundler cannot replace the calls of `require` in the CommonJS of undici, so the package contains undici as ES modules. */
describe('a bundle of @svc/provider-http', function () {
  this.timeout(60_000)
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-bundle-'))
    const aside = /\/(dist|test|node_modules)$/
    await cp(join(ROOT, 'libs/provider-http'), join(folder, 'provider-http'), {
      recursive: true,
      filter: path => !aside.test(path),
    })
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    await run(process.execPath, [join(ROOT, 'scripts/bundle.ts'), 'provider-http'], { cwd: folder })
    await writeFile(join(folder, 'program.js'), PROGRAM)
    // As published, but for the core, whose build this test does not need.
    const dist = join(folder, 'provider-http/dist')
    const alias = { '@svc/provider-http/sse': join(dist, 'sse.js'), '@svc/provider-http': join(dist, 'index.js') }
    const conditions = ['svc-source', 'import']
    await Promise.all([
      rolldown({
        input: join(folder, 'program.js'),
        platform: 'node',
        resolve: { alias, conditionNames: conditions },
        output: { dir: join(folder, 'out/rolldown'), format: 'esm' },
        logLevel: 'silent',
      }),
      esbuild({
        entryPoints: [join(folder, 'program.js')],
        platform: 'node',
        bundle: true,
        splitting: true,
        alias,
        conditions,
        outdir: join(folder, 'out/esbuild'),
        format: 'esm',
        logLevel: 'silent',
      }),
    ])
  })
  after(() => rm(folder, { recursive: true, force: true }))

  for (const bundler of ['rolldown', 'esbuild'])
    for (const [what, env] of [
      ['asks an upstream with no package beside it', {}],
      ['asks through the proxy of its environment', { NODE_USE_ENV_PROXY: '1' }],
    ] as const)
      it(`by ${bundler} ${what}`, async () => {
        await using fake = await openUpstream((_, reply) => reply.json(200, { ok: true }))
        const alone = await mkdtemp(join(tmpdir(), 'svc-alone-'))
        await cp(join(folder, 'out', bundler), alone, { recursive: true })
        await writeFile(join(alone, 'package.json'), '{"type": "module"}')
        try {
          const { stdout } = await run(process.execPath, ['program.js', fake.url], { cwd: alone, env: { ...env } })
          expect(JSON.parse(stdout)).to.deep.equal({ ok: true })
        } finally {
          await rm(alone, { recursive: true, force: true })
        }
      })

  it('contains no call of require that only a bundler could replace', async () => {
    for await (const file of glob('**/*.js', { cwd: join(folder, 'provider-http/dist') })) {
      const text = await readFile(join(folder, 'provider-http/dist', file), 'utf8')
      expect(text, file).to.not.match(/(?<![\w.])require\(/)
    }
  })
})
