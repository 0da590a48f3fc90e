import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { type Plugin, type ServiceToken, startHost, systemUse, type Use } from '@svc/core'
import { expect } from 'chai'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const text = await readFile(join(ROOT, 'docs/plugins.md'), 'utf8')

interface Sample {
  readonly line: number
  /** The file that its first line names. */
  readonly name: string | undefined
  readonly code: string
}
const FENCE = /^```(ts|js|jsonc?|yaml)\n([\s\S]*?)^```$/gm
const NAME = /^(?:\/\/|#) ([\w./-]+\.\w+)\n/
const samples: Sample[] = [...text.matchAll(FENCE)].map(({ index, 2: code = '' }) => ({
  line: text.slice(0, index).split('\n').length,
  name: NAME.exec(code)?.[1],
  code,
}))
const whole = samples.filter(one => one.name !== undefined)
const withoutComments = (code: string) => code.replaceAll(/(^|\s)\/\/.*$/gm, '')

/** Runs a program of the repository on Node's own terms; its output, also where it fails. */
async function run(folder: string, args: readonly string[]): Promise<{ code: number; out: string }> {
  const options = { cwd: folder, env: { ...process.env, SVC_HOME: join(folder, 'home'), NODE_OPTIONS: '' } }
  const ended = promisify(execFile)(process.execPath, args, options)
  return ended.then(
    ({ stdout }) => ({ code: 0, out: stdout }),
    ({ code, stdout, stderr }) => ({ code, out: `${stdout}${stderr}` })
  )
}

describe('docs/plugins.md', () => {
  let folder: string
  const at = (name: string) => join(folder, name)
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-samples-'))
    await symlink(join(ROOT, 'node_modules'), at('node_modules'))
    for (const { name = '', code } of whole) {
      await mkdir(dirname(at(name)), { recursive: true })
      await writeFile(at(name), name.endsWith('.json') ? withoutComments(code) : code)
    }
    const tsconfig = /A tsconfig for such a folder[^`]*`"type": "module"`: `([^`]+)`/.exec(text)?.[1] ?? ''
    const { compilerOptions } = JSON.parse(tsconfig.replaceAll('\n', ' ')) as { compilerOptions: object }
    const more = { customConditions: ['svc-source'], types: ['node', 'mocha'] }
    await writeFile(at('package.json'), '{ "type": "module" }')
    await writeFile(at('tsconfig.json'), JSON.stringify({ compilerOptions: { ...compilerOptions, ...more } }))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  it('names the file of each sample that is whole, and shows a gap in every other', () => {
    expect(whole.map(one => one.name)).to.include.members(['svc.config.yaml', 'weather/package.json', 'echo.ts', 'echo.spec.ts'])
    expect(samples.filter(one => one.name === undefined && !one.code.includes('…')).map(one => `line ${one.line}`)).to.deep.equal(
      []
    )
  })

  it('has samples of the right types, with the tsconfig that it gives', async () => {
    const tsc = fileURLToPath(import.meta.resolve('typescript/package.json'))
    expect(await run(folder, [join(dirname(tsc), 'bin/tsc'), '-p', '.'])).to.deep.equal({ code: 0, out: '' })
  }).timeout(60_000)

  it('has tests that pass', async () => {
    const mocha = join(ROOT, 'node_modules/mocha/bin/mocha.js')
    const specs = whole.map(one => one.name!).filter(name => name.endsWith('.spec.ts'))
    const args = ['--no-config', '--node-option', 'conditions=svc-source', '--reporter', 'json', '--timeout', '20000', ...specs]
    const { code, out } = await run(folder, [mocha, ...args])
    expect(code, out).to.equal(0)
    const { stats } = JSON.parse(out.slice(out.indexOf('{'))) as { stats: { passes: number; suites: number } }
    expect(stats.suites).to.equal(specs.length)
    expect(stats.passes).to.be.above(10)
  }).timeout(60_000)

  for (const [file, plugin, added] of [
    ['svc.config.yaml', 'hello', { routes: ['hello'] }],
    ['echo.yaml', 'echo', { providers: ['mine'] }],
  ] as const)
    it(`has a ${file} with which svc loads ${plugin}`, async () => {
      const { code, out } = await run(folder, [
        '--conditions=svc-source',
        join(ROOT, 'cli/bin/svc.js'),
        'plugins',
        '--json',
        '-c',
        file,
      ])
      expect(code, out).to.equal(0)
      const { plugins } = JSON.parse(out) as { plugins: { name: string; added: object }[] }
      expect(plugins.find(one => one.name === plugin)?.added).to.deep.equal(added)
    })

  it('has a package whose manifest and module agree, and a manifest that svc takes', async () => {
    await writeFile(at('package.yaml'), 'plugins: [./weather]\ntools: { weather: { unit: F } }\n')
    const { code, out } = await run(folder, [
      '--conditions=svc-source',
      join(ROOT, 'cli/bin/svc.js'),
      'config',
      'check',
      '-c',
      'package.yaml',
    ])
    expect(code, out).to.equal(0)
  })

  it('has a service whose slot and hook another plugin joins', async () => {
    const load = async <T>(name: string) => (await import(pathToFileURL(at(name)).href)) as T
    interface Greets {
      greet(language: string, name: string, use: Use): Promise<string>
    }
    const { default: greeter, Greeter } = await load<{ default: Plugin; Greeter: ServiceToken<Greets> }>('greeter.ts')
    const { default: french } = await load<{ default: Plugin }>('french.ts')
    const plugins = [
      { name: 'french', use: french },
      { name: 'greeter', use: greeter },
    ]
    await using host = await startHost({ plugins, log: { destination: { write() {} } } })
    const greet = (language: string, name: string) =>
      host.service(Greeter).greet(language, name, systemUse(new AbortController().signal))
    expect(await greet('fr', 'Zoé')).to.equal('Bonjour Zoé')
    expect(await greet('en', 'world')).to.equal('Hello, world!')
    expect(await greet('en', 'you')).to.equal('Hello you')
  })
})
