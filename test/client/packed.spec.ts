import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { access, copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { reachServer } from '@svc/runtime'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { type Browser, chromium } from 'playwright-core'
import { build } from 'rolldown'
import { layOut } from '../support/lay-out.ts'
import { chromiumPath, describeWith } from '../support/needs.ts'
import { newHome, type Service, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { type CuttingProxy, openCuttingProxy } from './support/cutting-proxy.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SUPPORT = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url))
const SCENARIO = fileURLToPath(new URL('./support/scenario.mjs', import.meta.url))
const KEY = 'a-long-random-key-for-these-tests'

/** Packs the client and lays it out in a folder with the packages that it needs, and no others. */
async function installPacked(folder: string): Promise<void> {
  if (process.env.SVC_TEST_ENTRY === undefined) await buildClient() // otherwise scripts/test.mjs has just done it
  await run('npm', ['pack', '--workspace', 'client', '--ignore-scripts', '--pack-destination', folder], { cwd: ROOT })
  const [tarball = ''] = (await readdir(folder)).filter(name => name.endsWith('.tgz'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'somebody', private: true, type: 'module' }))
  await layOut([join(folder, tarball)], folder)
}

async function buildClient(): Promise<void> {
  await run(join(ROOT, 'node_modules/.bin/tsc'), ['-b', '--noCheck', 'client/tsconfig.build.json'], { cwd: ROOT })
  await run(process.execPath, ['scripts/bundle.ts', 'client'], { cwd: ROOT })
}

/** Node.js as it is installed on the machine, not the one of this repository: the client supports Node.js 20. */
async function plainNode(): Promise<string> {
  for (const folder of (process.env.PATH ?? '').split(delimiter).filter(name => !name.includes('node_modules'))) {
    const file = join(folder, 'node')
    const { stdout } = await run(file, ['--version']).catch(() => ({ stdout: '' }))
    if (Number(/^v(\d+)/.exec(stdout)?.[1] ?? 0) >= 20) return file
  }
  return process.execPath
}

interface Outcome {
  readonly cut: {
    readonly status: string
    readonly last: string
    readonly resumed: readonly { readonly type: string }[]
    readonly whole: readonly { readonly type: string }[]
  }
  readonly [part: string]: unknown
}

function expectAll({ cut, ...rest }: Outcome): void {
  expect(rest).to.deep.equal({
    response: 'You said: Hello',
    chat: { isStored: true, hasAll: true },
    left: ['cancelled', 'completed'],
    runs: { result: { sum: 3 }, areSame: true },
    allowed: { tools: ['whereabouts'], result: { success: true, error: null }, hasText: true },
    denied: { tools: ['whereabouts'], result: { success: false, error: 'Not allowed: not today' }, hasText: true },
    feed: { error: 'Error: left', after: 'svc.turn_completed' },
    me: 'api_key',
    status: 200,
    errors: {
      unknown: '404 INVALID_VALUE',
      missing: '400 MISSING_FIELD',
      key: '401 AUTHENTICATION_FAILED',
      none: '401 AUTHENTICATION_FAILED',
      tooMany: '404 INVALID_VALUE',
      run: '404 INVALID_VALUE',
      lost: '404 TURN_LOST',
      aborted: 'Error: left',
    },
  })
  expect([cut.status, cut.last]).to.deep.equal(['running', 'completed'])
  expect(cut.whole.at(-1)?.type).to.equal('run_completed')
  expect(cut.whole).to.have.length.above(5)
  expect(cut.resumed).to.deep.equal(cut.whole)
}

describe('the packed client', function () {
  this.timeout(120_000)
  let folder: string
  let home: string
  let service: Service
  let proxy: CuttingProxy
  let pages: Awaited<ReturnType<typeof servePages>>

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'svc-client-'))
    home = await newHome()
    await installPacked(folder)
    pages = await servePages()
    const config = {
      plugins: [SUPPORT('asks.ts'), SUPPORT('runs.ts')],
      server: { auth: { enabled: true, api_key_env: 'SVC_TEST_KEY' }, cors: { origins: [pages.url] } },
    }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    service = await startService({ home, env: { SVC_TEST_KEY: KEY } })
    proxy = await openCuttingProxy(service.url, 2)
  })
  after(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await service?.stop()
    await pages?.close()
    for (const path of [folder, home]) if (path) await rm(path, { recursive: true, force: true })
  })
  /** Reloads the server during the chat of the scenario. */
  async function reloadInChat(): Promise<void> {
    const chats = async () => proxy.paths.filter(path => path === '/api/v1/chat/stream').length
    const before = await chats()
    await until(chats, count => count > before)
    using server = await reachServer(home)
    expect((await server.control.reload(testContext())).problems).to.deep.equal([])
  }
  const setup = () => ({ url: service.url, cutUrl: proxy.url, apiKey: KEY })

  it('chats, approves, resumes a run and reads events in plain Node.js', async () => {
    await copyFile(SCENARIO, join(folder, 'scenario.mjs'))
    const main = `import { scenario } from './scenario.mjs'
console.log(JSON.stringify(await scenario(JSON.parse(process.argv[2]))))`
    await writeFile(join(folder, 'main.mjs'), main)
    const running = run(await plainNode(), ['main.mjs', JSON.stringify(setup())], { cwd: folder })
    await Promise.race([reloadInChat(), running])
    const { stdout, stderr } = await running
    expectAll(JSON.parse(stdout) as Outcome)
    expect(stderr).to.equal('')
    expect(
      proxy.asked.filter(id => id !== undefined),
      'streams that were resumed'
    ).to.have.length.above(2)
  })

  it('has types for programs with the types of browsers only, and shows no credential', async () => {
    const readme = await readFile(join(folder, 'node_modules/@svc/client/README.md'), 'utf8')
    const [, routes = ''] = /```ts\n(const \{ conversations \}[^]*?)```/.exec(readme) ?? []
    expect(routes).to.not.equal('')
    await writeFile(join(folder, 'typed.ts'), `${TYPED}export async function routes(): Promise<void> {\n${routes}}\n`)
    const flags = '--noEmit --strict --module nodenext --target es2022 --lib es2022,dom,dom.asynciterable --types'.split(' ')
    const { stdout: problems } = await run(join(ROOT, 'node_modules/.bin/tsc'), [...flags, '', 'typed.ts'], {
      cwd: folder,
    }).catch((error: { readonly stdout: string }) => error)
    expect(problems).to.equal('')
    const shows = `import { createClient } from '@svc/client'
import { inspect } from 'node:util'
const svc = createClient({ url: 'http://127.0.0.1:1', apiKey: 'geheim', token: 'geheim', retry: false })
const error = await svc.get('/api/v1/status').catch(error => error)
console.log(inspect([svc, error], { depth: 20, showHidden: true }), JSON.stringify(error), error.stack)`
    await writeFile(join(folder, 'shows.mjs'), shows)
    const { stdout: shown } = await run(await plainNode(), ['shows.mjs'], { cwd: folder })
    expect(shown).to.contain('CONNECTION_FAILED').and.not.contain('geheim')
  })

  it('runs the examples of its README', async () => {
    const readme = await readFile(join(folder, 'node_modules/@svc/client/README.md'), 'utf8')
    const examples = [...readme.matchAll(/```js\n\/\/ (\S+)\n([^]*?)```/g)]
    expect(examples.map(([, name]) => name)).to.deep.equal([
      'chat.mjs',
      'detach.mjs',
      'approve.mjs',
      'questions.mjs',
      'run.mjs',
      'events.mjs',
      'errors.mjs',
    ])
    const node = await plainNode()
    const outputs: Record<string, string> = {}
    // one after the other: questions.mjs answers whatever is open
    for (const [, name = '', code = ''] of examples) {
      await writeFile(join(folder, name), code)
      const { stdout } = await run(node, [name], { cwd: folder, env: { SVC_URL: service.url, SVC_API_KEY: KEY } })
      outputs[name] = stdout
    }
    expect(outputs['chat.mjs']).to.contain('You said: Hello')
    expect(outputs['detach.mjs']).to.contain('You said: Hello')
    expect(outputs['approve.mjs']).to.match(/whereabouts[^]*whereabouts answered/)
    expect(outputs['run.mjs']).to.match(/Shall it go on\?[^]*completed/)
    expect(outputs['events.mjs']).to.contain('svc.turn_completed')
    expect(outputs['errors.mjs']).to.contain('404 conversation_id not found')
  })

  it('contains no source and no dependency on the server', async () => {
    const installed = await readdir(join(folder, 'node_modules'))
    expect(installed.filter(name => !name.startsWith('.')).sort()).to.deep.equal([
      '@svc',
      'eventsource-parser',
      'openapi-fetch',
      'openapi-typescript-helpers',
    ])
    expect(await readdir(join(folder, 'node_modules/@svc'))).to.deep.equal(['client'])
    await access(join(folder, 'node_modules/@svc/client/dist/ai-sdk.js'))
    // without the AI SDK: it is an optional peer
    const { stdout } = await run(
      process.execPath,
      ['-e', "import('@svc/client/ai-sdk').then(m => console.log(Object.keys(m).join()))"],
      {
        cwd: folder,
      }
    )
    expect(stdout.trim()).to.equal('approvalsAreAnswered,createChatTransport')
  })

  describeWith('chromium', 'in Chromium', () => {
    let browser: Browser
    before(async () => {
      browser = await chromium.launch({
        executablePath: chromiumPath()!,
        args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      })
    })
    after(() => browser?.close())

    it('does the same on a page of another origin', async () => {
      await copyFile(SCENARIO, join(folder, 'scenario.mjs'))
      const { output } = await build({
        input: join(folder, 'scenario.mjs'),
        platform: 'browser',
        write: false,
        output: { format: 'esm', codeSplitting: false },
        logLevel: 'silent',
      })
      pages.files.set('/scenario.js', output[0].code)
      const page = await browser.newPage()
      await page.goto(pages.url)
      const running = page.evaluate(async given => {
        const path = '/scenario.js'
        const { scenario } = (await import(path)) as { scenario(setup: object): Promise<unknown> }
        return scenario(given)
      }, setup())
      await Promise.race([reloadInChat(), running])
      expectAll((await running) as Outcome)
    })

    it('lets a page of another origin read the headers that it needs', async () => {
      const page = await browser.newPage()
      await page.goto(pages.url)
      const headers = await page.evaluate(
        async ([address, key]) => {
          const response = await fetch(address, { headers: { 'x-api-key': key } })
          return ['etag', 'x-request-id'].map(name => response.headers.get(name) !== null)
        },
        [`${service.url}/docs`, KEY] as const
      )
      expect(headers).to.deep.equal([true, true])
      await page.close()
    })

    it('has an EventSource that remembers an id without data, as the events of the server begin', async () => {
      const asked: (string | undefined)[] = []
      const twice = Promise.withResolvers<void>()
      const server = createServer((request, response) => {
        asked.push(request.headers['last-event-id']?.toString())
        if (asked.length === 2) twice.resolve()
        const headers = { 'content-type': 'text/event-stream', 'access-control-allow-origin': '*' }
        response.writeHead(200, headers).end('retry: 10\nid: the-position\n\n')
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const page = await browser.newPage()
      await page.goto(pages.url)
      const port = (server.address() as AddressInfo).port
      await page.evaluate(address => void new EventSource(address), `http://127.0.0.1:${port}/`)
      await twice.promise
      expect(asked.slice(0, 2)).to.deep.equal([undefined, 'the-position'])
      await page.close()
      server.close()
      server.closeAllConnections()
    })

    it('is small: a bundler removes what a page does not use', async () => {
      const entry = join(folder, 'small.mjs')
      await writeFile(entry, "import { isApiError } from '@svc/client'\nconsole.log(isApiError(1))\n")
      const sizeOf = async (input: string) => {
        const { output } = await build({ input, platform: 'browser', write: false, output: { minify: true }, logLevel: 'silent' })
        return output[0].code.length
      }
      expect(await sizeOf(entry)).to.be.below(2_000)
      expect(await sizeOf(join(folder, 'scenario.mjs'))).to.be.below(30_000)
    })
  })
})

const TYPED = `import { createClient, type EventStream, isApiError, type Schemas } from '@svc/client'

const svc = createClient({ url: '/', token: async () => 'x', retry: { retries: 3 } })
export async function typed(): Promise<void> {
  const status = await svc.get('/api/v1/status')
  status.version satisfies string
  // @ts-expect-error a conversation needs its id
  await svc.get('/api/v1/conversations/{id}')
  // @ts-expect-error there is no such route
  await svc.get('/api/v1/chat')
  // @ts-expect-error the field has another name
  await svc.post('/api/v1/chat', { body: { mesage: 'x' } })
  ;(await svc.delete('/api/v1/conversations/{id}', { path: { id: 'x' } })) satisfies undefined
  const run = await svc.runs.start({ workflow: 'x' })
  run.waiting_for?.[0]?.question?.message satisfies string | undefined
  svc.events({ types: 'turn_*' }) satisfies EventStream<Schemas['CloudEvent']>
  for await (const event of svc.chat.stream({ message: 'x' }, { onAsk: ask => ask.tool === 'x' }))
    if (event.type === 'token') event.content satisfies string
  for await (const event of svc.runs.events('x')) if (event.type === 'node_waiting') event.node satisfies string
  for await (const line of svc.stream('get', '/api/v1/logs', { query: { follow: true } }))
    line.request_id satisfies string | null
  for await (const one of svc.stream('get', '/api/v1/doctor')) if ('state' in one) one.message satisfies string
  svc.chat.resume('turn').turnId satisfies string | undefined
  const parts = [{ type: 'image', media_type: 'image/png', data: '' }] as const
  await svc.chat.reply({ message: 'x', profile: 'a', mode: 'b', system: 'c', response_schema: {}, parts: [...parts], token_budget: 1 })
  // @ts-expect-error a part has data
  await svc.chat.reply({ message: 'x', parts: [{ type: 'image', media_type: 'image/png' }] })
  // @ts-expect-error this route does not stream
  svc.stream('get', '/api/v1/status')
  try {
    await svc.chat.reply({ message: 'x' })
  } catch (error) {
    if (isApiError(error, 'RATE_LIMITED')) error.details.retry_after satisfies number | undefined
    // @ts-expect-error there is no such code
    if (isApiError(error, 'NO_SUCH_CODE')) throw error
  }
}
`

/** Files in memory, on an origin of their own. */
async function servePages() {
  const files = new Map([['/', '<!doctype html><title>page</title>']])
  const server = createServer(({ url = '/' }, response) => {
    const text = files.get(url)
    const type = url.endsWith('.js') ? 'text/javascript' : 'text/html'
    response.writeHead(text === undefined ? 404 : 200, { 'content-type': type }).end(text)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    files,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
