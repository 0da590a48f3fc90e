import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { FRUGAL, SVC } from '../support/entry.ts'
import { PROGRAMS } from '../support/tutorial-programs.ts'
import { describeWith } from '../support/needs.ts'
import { until } from '../support/wait.ts'
import { openBrowser, openConsole } from './support/browser.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PAGE = 'docs/tutorials/first-console-page.md'

describeWith('chromium', PAGE, function () {
  this.timeout(300_000)
  let browser: Browser
  let place: string
  let folder: string
  let text: string
  const outputs = new Map<string, string>()

  before(async () => {
    browser = await openBrowser()
    place = await mkdtemp(join(tmpdir(), 'svc-page-tutorial-'))
    folder = join(place, 'svc-plugin-orders')
    text = await readFile(join(ROOT, PAGE), 'utf8')
    // npm install would ask a registry: what it brings is in this repository
    await symlink(join(ROOT, 'node_modules'), join(place, 'node_modules'))
  })
  after(async () => {
    await browser?.close()
    await rm(place, { recursive: true, force: true })
  })

  const env = () => {
    const own = Object.entries(process.env).filter(([name]) => name !== 'NODE_TEST_CONTEXT')
    return { ...Object.fromEntries(own), ...FRUGAL, SVC_HOME: join(place, 'home'), SVC_SERVER__PORT: '0' }
  }

  /** Runs a command of the page, which must be there. */
  async function run(command: string, { cwd = folder, more = [] as readonly string[] } = {}): Promise<string> {
    expect(text, 'the page').to.contain(`\n${command}\n`)
    const [file = '', ...args] = [...programOf(command), ...more]
    const { stdout, stderr } = await promisify(execFile)(file, args, { cwd, env: env(), maxBuffer: 1 << 26 }).catch(
      (error: { stdout: string; stderr: string }) => Promise.reject(new Error(`${command}\n${error.stdout}\n${error.stderr}`))
    )
    outputs.set(command, stdout + stderr)
    return stdout + stderr
  }

  /** Starts a server of the page. Disposing ends it. */
  async function start(command: string) {
    expect(text, 'the page').to.contain(command)
    const [file = '', ...args] = programOf(command)
    const child = spawn(file, args, { cwd: folder, env: env(), stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece: Buffer) => void (out += String(piece)))
    const ended = once(child, 'exit')
    const url = await until(
      async () =>
        /listens on (http:\/\/\S+)/.exec(out)?.[1] ?? (child.exitCode === null ? undefined : Promise.reject(new Error(out))),
      found => found !== undefined
    )
    return {
      url: url!,
      async [Symbol.asyncDispose]() {
        child.kill('SIGTERM')
        await ended
      },
    }
  }

  const blocks = (language: string) =>
    [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block)

  /** The file whose name is in its first line. */
  const fileOf = (name: string) => blocks('ts').find(block => block.startsWith(`// ${name}\n`))!

  /** What the page says to write, in its order. */
  async function writeFiles(): Promise<void> {
    const [manifest = '', table = '', panel = ''] = blocks('json')
    await writeFile(join(folder, 'src/orders.ts'), fileOf('src/orders.ts'))
    const pkg = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as { svc: object }
    const svc = { ...pkg.svc, ...(JSON.parse(`{${manifest}}`) as object) }
    await writeFile(join(folder, 'console/orders.json'), table)
    await writeFile(join(folder, 'console/today.json'), panel)
    await writeFile(join(folder, 'package.json'), JSON.stringify({ ...pkg, svc }, undefined, 2))
    await writeFile(join(folder, 'src/index.ts'), fileOf('src/index.ts'))
  }

  /** The table and the panel, as a reader sees them. */
  async function expectPages(url: string): Promise<void> {
    await using view = await openConsole(browser, `${url}/console`)
    const { page, problems } = view
    const panel = page.locator('.card', { hasText: 'svc-plugin-orders' })
    await panel.getByText('200', { exact: true }).waitFor()
    await panel.getByText('2', { exact: true }).waitFor()
    await page.getByRole('group', { name: 'From plugins' }).getByRole('link', { name: 'Orders' }).click()
    await page.getByRole('heading', { name: 'Orders', level: 1 }).waitFor()
    for (const cell of ['Ada', 'Grace', '120', '80']) await page.getByRole('cell', { name: cell, exact: true }).waitFor()
    expect(problems).to.deep.equal([])
  }

  it('creates a package whose page greets the world', async () => {
    await run('svc plugins new svc-plugin-orders --kind page', { cwd: place })
    await run('npm test')
    await using server = await start('svc plugins dev')
    await using view = await openConsole(browser, `${server.url}/console`)
    await view.page.getByRole('group', { name: 'From plugins' }).getByRole('link', { name: 'Orders' }).click()
    await view.page.locator('.tile', { hasText: 'Hello' }).getByText('world').waitFor()
    // what the reader writes comes into the running server
    await writeFiles()
    await until(
      () => fetch(`${server.url}/orders`),
      ({ status }) => status === 200
    )
    await expectPages(server.url)
  })

  it('has a package that passes the kit, and is installed with both pages and the request', async () => {
    await run('npm test')
    await run('npm run build')
    const said = await run('svc plugins install .', { more: ['--yes'] })
    expect(said).to.contain('the page "Orders" in the console').and.to.contain('the panel "Orders" on the overview')
    expect(said).to.contain('GET /orders')
    await using server = await start('svc serve')
    await expectPages(server.url)
  })

  it('runs each command of the page', () => {
    const written = blocks('sh').flatMap(block => block.trim().split('\n'))
    const others = ['cd svc-plugin-orders', 'npm install', 'svc plugins dev']
    expect([...outputs.keys(), ...others]).to.include.members(written)
  })
})

const programOf = (command: string) => PROGRAMS[command] ?? [process.execPath, ...SVC, ...command.split(' ').slice(1)]
