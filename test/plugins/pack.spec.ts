import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { layOut } from '../support/lay-out.ts'
import { post } from '../support/service.ts'
import { configureFew } from '../support/tides.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const environment = (home: string) => ({ PATH: process.env.PATH, HOME: process.env.HOME, SVC_HOME: home })

/** Packs every package that is published; returns the tarballs. */
async function packAll(into: string): Promise<string[]> {
  await build()
  await run('npm', ['pack', '--workspaces', '--ignore-scripts', '--pack-destination', into], { cwd: ROOT })
  // the page of the console is part of its plugin
  const tarballs = (await readdir(into)).filter(name => /^svc-(?!example-|console-page-).*\.tgz$/.test(name))
  return tarballs.map(name => join(into, name))
}

/** `npm run build`, where scripts/test.mjs has not just done it. */
async function build(): Promise<void> {
  if (process.env.SVC_TEST_ENTRY === undefined) await run('npm', ['run', '--silent', 'build'], { cwd: ROOT })
}

/** What npm makes of the tarballs; in `npm test` without npm, for which that is as much work as a hundred of its tests. */
async function install(tarballs: readonly string[], folder: string): Promise<void> {
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'somebody', private: true, type: 'module' }))
  if (process.env.SVC_TEST_ENTRY !== undefined) return layOut(tarballs, folder)
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', ...tarballs], { cwd: folder })
}

describe('the packed packages', function () {
  this.timeout(180_000)
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-packed-'))
    const tarballs = await packAll(folder)
    await install(tarballs, folder)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const svc = (args: string[]) =>
    [process.execPath, [join(folder, 'node_modules', '@svc', 'cli', 'bin', 'svc.js'), ...args]] as const

  it('serve and chat in an empty folder with nothing of the workspace around', async () => {
    const [command, args] = svc(['serve', '--port', '0', '--json'])
    const home = join(folder, 'home')
    const child = spawn(command, args, { cwd: folder, env: environment(home), stdio: ['ignore', 'pipe', 'inherit'] })
    const gone = once(child, 'exit')
    try {
      const url = await readyUrl(child.stdout)
      const { status, body } = await post(`${url}/api/v1/chat`, { message: 'Hello from a tarball\n/tool current_time {}' })
      expect(status).to.equal(200)
      expect(body.response).to.contain('Hello from a tarball')
      expect(body.tools_used).to.have.length(1)
    } finally {
      child.kill('SIGTERM')
      await gone
    }
    expect(child.exitCode).to.equal(0)
  })

  it('serve the page of the console with its scripts and its style sheet', async () => {
    const [command, args] = svc(['serve', '--port', '0', '--json'])
    const env = environment(join(folder, 'console'))
    const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const gone = once(child, 'exit')
    try {
      const url = await readyUrl(child.stdout)
      const page = await fetch(`${url}/console`)
      const html = await page.text()
      expect(page.status, html).to.equal(200)
      const files = [...html.matchAll(/"(\/console\/files\/[^"]+)"/g)].map(([, path]) => path!)
      expect(files.map(path => path.replace(/-[^.]+/, '-*'))).to.include.members([
        '/console/files/index-*.js',
        '/console/files/style-*.css',
      ])
      for (const path of files) {
        const file = await fetch(url + path)
        expect(file.status, path).to.equal(200)
        expect((await file.text()).length, path).to.be.above(100)
      }
    } finally {
      child.kill('SIGTERM')
      await gone
    }
  })

  it('start without loading ajv: what a start checks has been compiled by the build', async () => {
    const [command, args] = svc(['serve', '--port', '0', '--json'])
    const loaded = join(folder, 'loaded')
    const note = `import { appendFileSync } from 'node:fs'
      import { registerHooks } from 'node:module'
      registerHooks({ load: (url, context, next) => (appendFileSync(${JSON.stringify(loaded)}, url + '\\n'), next(url, context)) })`
    const env = {
      ...environment(join(folder, 'noted')),
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(note)}`,
    }
    const child = spawn(command, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    const gone = once(child, 'exit')
    try {
      await readyUrl(child.stdout)
      const urls = await readFile(loaded, 'utf8')
      expect(urls).to.contain('/cli/dist/validators.cjs')
      expect(urls).to.not.contain('/ajv/dist/ajv.js')
    } finally {
      child.kill('SIGTERM')
      await gone
    }
  })

  it('answer svc chat without a server, and show their help', async () => {
    const [command, args] = svc(['chat', 'Hello again'])
    const { stdout } = await run(command, args, { cwd: folder, env: environment(join(folder, 'other')) })
    expect(stdout).to.contain('Hello again')
  })

  it('show their help from manifests: neither a command, nor a plugin, nor the kernel is imported', async () => {
    const loaded = join(folder, 'loaded.txt')
    const watch = `import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
registerHooks({ load: (url, context, next) => (appendFileSync(${JSON.stringify(loaded)}, url + '\\n'), next(url, context)) })
`
    await writeFile(join(folder, 'watch.mjs'), watch)
    for (const words of [['--help'], ['chat', '--help'], ['workflows', 'run', '--help'], ['tokens', 'creat']]) {
      await writeFile(loaded, '')
      const [command, args] = svc(words)
      const watched = ['--import', join(folder, 'watch.mjs'), ...args]
      const said = await run(command, watched, { cwd: folder, env: environment(join(folder, 'other')) }).catch(
        (error: unknown) => error
      )
      expect(Object(said))
        .to.have.property(words.includes('--help') ? 'stdout' : 'stderr')
        .that.matches(/svc (\[COMMAND\]|chat \[MESSAGE\]|workflows run|tokens create)/)
      const files = (await readFile(loaded, 'utf8')).split('\n').map(url => url.replace(/^.*\/node_modules\//, ''))
      expect(files.filter(file => /^@svc\/(plugin-|cli\/dist\/commands\.js)/.test(file))).to.deep.equal([])
      expect(files.length).to.be.above(50)
      if (words.includes('--help'))
        expect(files.filter(file => /^(@svc\/core\/dist\/src\/index|tapable|pino)/.test(file))).to.deep.equal([])
    }
  })

  it('write a build of themselves that needs nothing of where they were installed', async () => {
    const few = join(folder, 'few')
    await mkdir(few)
    await configureFew(few)
    const [command, args] = svc(['build', 'built', '--config', join(few, 'svc.config.json')])
    await run(command, args, { cwd: folder, env: environment(join(folder, 'fourth')) })
    const built = join(folder, 'elsewhere')
    await rename(join(folder, 'built'), built)
    const { stdout } = await run(process.execPath, [join(built, 'start.mjs'), 'chat', 'Hello from a build'], {
      cwd: tmpdir(),
      env: environment(join(folder, 'fifth')),
    })
    expect(stdout).to.contain('Hello from a build')
  })

  it('write new plugins whose packages of svc link to the installed files, so that npm installs them', async () => {
    const [command, args] = svc(['plugins', 'new', 'svc-plugin-linked', '--kind', 'command', '--js'])
    const work = await mkdtemp(join(tmpdir(), 'svc-linked-'))
    try {
      await run(command, args, { cwd: work, env: environment(join(folder, 'sixth')) })
      const cwd = join(work, 'svc-plugin-linked')
      const { devDependencies } = JSON.parse(await readFile(join(cwd, 'package.json'), 'utf8')) as {
        devDependencies: Record<string, string>
      }
      const linkTo = (name: string) => `file:${join(folder, 'node_modules', name)}`
      for (const name of ['@svc/core', '@svc/testing', '@svc/cli']) expect(devDependencies[name], name).to.equal(linkTo(name))
      expect(await readFile(join(cwd, 'README.md'), 'utf8')).to.include('link to the svc on this machine')
      const env = { ...process.env, npm_config_offline: 'true', npm_config_cache: join(work, 'cache') }
      await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd, env })
      const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap'], {
        cwd,
        env: Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'NODE_TEST_CONTEXT')),
      })
      expect(stdout)
        .to.match(/^# fail 0$/m)
        .and.to.match(/^# pass [1-9]/m)
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  })

  it('load a plugin and a configuration in TypeScript that import the installed core', async () => {
    await writeFile(join(folder, 'hello.ts'), HELLO)
    await writeFile(
      join(folder, 'svc.config.ts'),
      `import { defineConfig } from '@svc/core'\nexport default defineConfig({ plugins: ['./hello.ts'] })\n`
    )
    const [command, args] = svc(['plugins', '--json', '--config', 'svc.config.ts'])
    const { stdout } = await run(command, args, { cwd: folder, env: environment(join(folder, 'third')) })
    expect(stdout).to.contain('"hello"')
  })
})

/** Where it listens; a line of its log may come first. */
async function readyUrl(output: Readable): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const { event, url } = JSON.parse(line) as { event?: string; url?: string }
    if (event === 'ready') return url!
  }
  throw new Error('it ended before it listened')
}

const HELLO = `import { definePlugin } from '@svc/core'
import { Routes } from '@svc/core/contracts'
export default definePlugin({
  setup: scope => void scope.add(Routes, 'hello', { method: 'GET', path: '/hello', summary: 'Says hello', handle: async () => ({ body: {} }) }),
})
`
