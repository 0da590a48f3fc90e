// Not a unit test: it starts servers and commands.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { COMPILED, SVC } from '../support/entry.ts'
import { describeWith } from '../support/needs.ts'
import { post, type Service, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { writeStranger } from '../support/stranger.ts'

const SEALED = `canary-sealed-${randomBytes(9).toString('hex')} "quoted" \\ back\nsecond-line-of-canary-${randomBytes(6).toString('hex')}`
const FROM_ENV = `canary-env-${randomBytes(12).toString('hex')}`
const FROM_FILE = `canary-file-${randomBytes(12).toString('hex')}-${'k'.repeat(9_000)}`
const ROTATED = `canary-rotated-${randomBytes(12).toString('hex')}`
const KEY = randomBytes(32).toString('base64')
const CANARIES = [SEALED, FROM_ENV, FROM_FILE, ROTATED, KEY]

/** Parts of the canaries in the forms in which they could leave: as they are, and encoded. */
const TRACES = CANARIES.flatMap(value => value.split(/["\\\n]+/))
  .filter(part => part.trim().length >= 16)
  .flatMap(part => {
    const bytes = Buffer.from(part.trim().slice(0, 40))
    const shifted = [0, 1, 2].map(shift =>
      Buffer.concat([Buffer.alloc(shift), bytes])
        .toString('base64')
        .slice(4, -4)
    )
    return [bytes.toString(), bytes.toString('hex'), encodeURIComponent(bytes.toString()), ...shifted]
  })

/** Finds a canary in the output of one place. */
function expectClean(place: string, output: string | Uint8Array): void {
  const bytes = Buffer.from(output)
  for (const trace of TRACES) {
    const at = bytes.indexOf(trace)
    if (at >= 0) expect.fail(`${place} contains a canary: …${bytes.subarray(Math.max(0, at - 60), at + 20).toString()}…`)
  }
}

/** A plugin that does all it can to reveal its secrets by mistake. */
const leak = (name: string) => `import { definePlugin, schema, svcError } from '@svc/core'
import { Checks, MetricSources, Routes, Secrets, Tools } from '@svc/core/contracts'
export default definePlugin({
  section: 'tools.${name}',
  config: schema({ type: 'object', additionalProperties: false, properties: { token: { type: 'string' } } }),
  requires: { secrets: Secrets },
  async setup(scope, { secrets }) {
    const ctxOf = signal => ({ signal, principal: { id: 'system', scopes: ['*'] }, requestId: 'setup' })
    const read = async ctx => [scope.config.token, ...await Promise.all(['sealed', 'from_env', 'from_file'].map(async name => (await secrets.read(name, ctx)).value))]
    const wild = all => ({ plain: all, nested: { [all[0]]: all.join(' ') }, json: JSON.stringify(all), twice: JSON.stringify(JSON.stringify(all)),
      url: all.map(encodeURIComponent).join('&'), basic: Buffer.from('user:' + all[0]).toString('base64'), base64: all.map(value => Buffer.from(value).toString('base64')), hex: all.map(value => Buffer.from(value).toString('hex')) })
    const tool = call => ({ description: 'Leaks', category: 'demo', effects: [], parameters: { type: 'object' }, call })
    const content = data => ({ content: [{ type: 'text', text: JSON.stringify(data) }], structured: data })
    const add = (word, call) => scope.add(Tools, '${name}_' + word, tool(call))
    add('return', async (_, ctx) => content(wild(await read(ctx))))
    add('throw', async (_, ctx) => { throw new Error('cannot connect with ' + (await read(ctx)).join(' and ')) })
    add('throw_code', async (_, ctx) => { const all = await read(ctx); throw svcError('TOOL_EXECUTION_FAILED', all.join(), { details: wild(all), hint: all[1], where: all[2], cause: new Error(all[0]) }) })
    add('log', async (_, ctx) => {
      const all = await read(ctx)
      for (const level of ['debug', 'info', 'warn', 'error']) scope.log[level]({ ...wild(all), err: new Error(all[0]) }, 'the value is ' + all.join(' '))
      console.log(all.join(' ')); console.error(all.join(' ')); process.stderr.write(Buffer.from(all.join('\\n')) + '\\n')
      return content('logged')
    })
    add('other', async (_, ctx) => {
      const tried = {}
      for (const name of ['other', '../other', '__proto__', 'other\\0', '', 'x'.repeat(10000)])
        tried[name.slice(0, 20)] = await secrets.read(name, ctx).then(() => 'READ', error => error.code)
      tried.list = await secrets.list(ctx).then(() => 'LISTED', error => error.code)
      tried.set = await secrets.set('sealed', 'x', ctx).then(() => 'SET', error => error.code)
      return content(tried)
    })
    add('crash', async (_, ctx) => { const all = await read(ctx); setTimeout(() => { throw Object.assign(new Error('crashed with ' + all.join(' ')), { all }) }, 50); return content('soon') })
    scope.add(Routes, '${name}_text', { method: 'GET', path: '/${name}/text', scope: 'read', summary: 'Leaks', handle: async (_, ctx) => ({ text: (await read(ctx)).join(' ') }) })
    scope.add(Routes, '${name}_body', { method: 'GET', path: '/${name}/body', scope: 'read', summary: 'Leaks', handle: async (_, ctx) => ({ body: wild(await read(ctx)) }) })
    scope.add(Routes, '${name}_throw', { method: 'GET', path: '/${name}/throw', scope: 'read', summary: 'Leaks', handle: async (_, ctx) => { throw new Error((await read(ctx)).join()) } })
    scope.add(Routes, '${name}_events', { method: 'GET', path: '/${name}/events', scope: 'read', summary: 'Leaks', streams: 'text/event-stream', async *stream(_, ctx) {
      for (const value of await read(ctx)) yield 'data: ' + JSON.stringify(value) + '\\n\\n'
    } })
    scope.add(Checks, '${name}', { probe: async ctx => ({ status: 'degraded', reason: (await read(ctx)).join(), detail: wild(await read(ctx)) }) })
    scope.add(MetricSources, '${name}', { read: async ctx => { const all = await read(ctx); return [{ name: 'leaks', help: all[1], type: 'gauge', aggregator: 'sum', values: [{ labels: { value: all[1] }, value: 1 }] }] } })
  },
})`

const TOOLS = ['return', 'throw', 'throw_code', 'log', 'other', 'crash']
const ROUTES = ['text', 'body', 'throw', 'events']
const manifestOf = (name: string) => ({
  kind: 'tool',
  contributes: {
    tools: TOOLS.map(word => `${name}_${word}`),
    routes: Object.fromEntries(
      ROUTES.map(word => [`${name}_${word}`, { method: 'GET', path: `/${name}/${word}`, scope: 'read' }])
    ),
    checks: [name],
    metric_sources: [name],
  },
  permissions: { secrets: ['sealed', 'from_env', 'from_file'], services: ['checks', 'metric_sources'] },
})
const PLUGINS = { near: 'in-process', far: 'process' } as const

/** Runs a command with this text as standard input. */
async function svc(place: Place, args: readonly string[], input = '') {
  const env = { PATH: process.env.PATH, ...COMPILED, FROM_ENV, SVC_HOME: place.home }
  const child = spawn(process.execPath, [...SVC, ...args], { env, cwd: place.folder, stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.end(input)
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { code: code as number, out, err }
}

interface Place {
  readonly folder: string
  readonly home: string
}

async function layOut(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-canary-'))
  const home = join(folder, 'home')
  await mkdir(home)
  await mkdir(join(folder, 'workflows'))
  for (const name of Object.keys(PLUGINS))
    await writeStranger(folder, { name: `svc-plugin-${name}`, svc: manifestOf(name), code: leak(name) })
  await writeFile(join(folder, 'key'), KEY, { mode: 0o600 })
  await writeFile(join(folder, 'value'), `${FROM_FILE}\n`, { mode: 0o600 })
  const nodes = (name: string) => ({
    returned: { type: 'tool', name: `${name}_return`, next: 'thrown' },
    thrown: { type: 'tool', name: `${name}_throw` },
  })
  for (const name of Object.keys(PLUGINS))
    await writeFile(join(folder, 'workflows', `${name}.json`), JSON.stringify({ name, start: 'returned', nodes: nodes(name) }))
  const config = {
    secrets: {
      key_file: join(folder, 'key'),
      sources: { from_env: { env: 'FROM_ENV' }, from_file: { file: join(folder, 'value') } },
    },
    tools: { near: { token: '${secret:sealed}' }, far: { token: 'a ${secret:sealed}' } },
    mcp: { server: { enabled: true } },
    workflows: { roots: [join(folder, 'workflows')] },
    traces: { enabled: true, content: true },
    plugins: Object.entries(PLUGINS).map(([name, isolation]) => ({ use: `./svc-plugin-${name}`, isolation })),
  }
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config))
  return { folder, home }
}

const answerOf = async (answer: Response) => JSON.stringify([...answer.headers]) + (await answer.text())

/** Reads a stream of events until `end`. */
function follow(url: string): { end(): Promise<string> } {
  const stop = new AbortController()
  let text = ''
  const reading = (async () => {
    const { body } = await fetch(url, { signal: stop.signal })
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) text += chunk
  })().catch(() => {})
  return {
    async end() {
      await until(
        async () => text,
        seen => seen.includes('run_ended')
      )
      stop.abort()
      await reading
      return text
    },
  }
}

/** Calls all tools in all ways, and reads everything that the server serves. */
async function exercise({ url }: Service): Promise<Map<string, string>> {
  const outputs = new Map<string, string>()
  const note = async (what: string, work: Promise<Response>) => void outputs.set(what, await answerOf(await work))
  const send = (path: string, body: object) =>
    fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  const events = follow(`${url}/api/v1/events`)
  for (const name of Object.keys(PLUGINS)) {
    for (const tool of TOOLS.filter(word => word !== 'crash')) {
      await note(`chat ${name} ${tool}`, send('/api/v1/chat', { message: `/tool ${name}_${tool} {}` }))
      await note(`stream ${name} ${tool}`, send('/api/v1/chat/stream', { message: `/tool ${name}_${tool} {}` }))
      await note(`call ${name} ${tool}`, send(`/tools/${name}_${tool}/call`, { arguments: {} }))
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: `${name}_${tool}`, arguments: {} } }
      await note(`mcp ${name} ${tool}`, send('/mcp', message))
    }
    for (const route of ROUTES) await note(`route ${name} ${route}`, fetch(`${url}/${name}/${route}`))
    await note(`run ${name}`, send('/api/v1/workflows/run', { workflow: name }))
  }
  const { workflow_runs: runs = [], runs: others = [] } = (await (await fetch(`${url}/api/v1/workflows/runs`)).json()) as Record<
    string,
    { workflow_id?: string; id?: string }[]
  >
  for (const { workflow_id, id = workflow_id } of [...runs, ...others])
    for (const part of ['status', 'steps', 'events'])
      await note(`run ${id} ${part}`, fetch(`${url}/api/v1/workflows/${id}/${part}`))
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, { get?: object }> }
  outputs.set('events', await events.end())
  for (const [path, { get }] of Object.entries(paths))
    if (get && !path.includes('{') && path !== '/api/v1/events') await note(path, fetch(url + path))
  const { traces } = (await (await fetch(`${url}/api/v1/traces`)).json()) as { traces: { id?: string; trace_id?: string }[] }
  for (const { trace_id, id = trace_id } of traces) await note(`trace ${id}`, fetch(`${url}/api/v1/traces/${id}`))
  await note('/openapi.json', fetch(`${url}/openapi.json`))
  return outputs
}

async function filesBelow(folder: string): Promise<string[]> {
  const all = await readdir(folder, { recursive: true, withFileTypes: true })
  return all.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
}

const COMMANDS: readonly (readonly string[])[] = [
  ['secrets', 'list'],
  ['secrets', 'list', '--json'],
  ['config', 'show'],
  ['config', 'show', '--json'],
  ['config', 'check'],
  ['doctor'],
  ['doctor', '--json'],
  ['status'],
  ['status', '--json'],
  ['plugins'],
  ['plugins', '--json'],
  ['tools', 'call', 'near_throw', '--local'],
  ['tools', 'call', 'far_return', '--local'],
  ['chat', '/tool near_throw {}'],
  ['secrets', 'set', 'sealed', SEALED],
]

describeWith('bubblewrap', 'the values of secrets', function () {
  this.timeout(240_000)
  let place: Place
  let service: Service
  let outputs: Map<string, string>

  before(async () => {
    place = await layOut()
    const missing = await svc(place, ['doctor'])
    expect(missing.out + missing.err)
      .to.include('SECRET_UNKNOWN')
      .and.include('svc secrets set sealed')
    const stored = await svc(place, ['secrets', 'set', 'sealed'], `${SEALED}\n`)
    expect(stored.code, stored.err).to.equal(0)
    await svc(place, ['secrets', 'set', 'other'], 'canary-other-0123456789')
    expectClean('secrets set', stored.out + stored.err)
    service = await startService({ home: place.home, cwd: place.folder, env: { FROM_ENV }, args: ['--debug'] })
    outputs = await exercise(service)
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await rm(place.folder, { recursive: true, force: true, maxRetries: 10 })
  })

  it('reach the plugins that may read them, and leave by no answer of the server', () => {
    for (const name of Object.keys(PLUGINS)) {
      expect(outputs.get(`chat ${name} return`)).to.include('[secret]')
      expect(outputs.get(`call ${name} throw`)).to.match(/cannot connect with (a )?\[secret\] and \[secret\]/)
    }
    expect(outputs.size).to.be.above(60)
    for (const [place, output] of outputs) expectClean(place, output)
  })

  it('are not read, listed or set by a plugin without the permission', () => {
    for (const name of Object.keys(PLUGINS)) {
      const answer = outputs.get(`call ${name} other`) ?? ''
      expect(answer, name)
        .to.include('NOT_PERMITTED')
        .and.not.match(/READ|LISTED|\bSET\b/)
    }
  })

  it('are in no line that the server has logged', async () => {
    await service.seen(/the value is \[secret\]/, 8)
    expectClean('the log', service.output())
  })

  it('are in no output of a command', async () => {
    for (const args of COMMANDS) {
      const { out, err } = await svc(place, args)
      expectClean(`svc ${args.join(' ').slice(0, 40)}`, out + err)
    }
  })

  it('are in no file of the home and in no backup, not even in the text of a crash', async () => {
    await post(`${service.url}/tools/near_crash/call`, { arguments: {} }).catch(() => {})
    await service.seen(/this worker exits because of an uncaught error/)
    await service.seen(/"event":"worker|restart|ready/i)
    const backup = join(place.folder, 'backup.db')
    const made = await svc(place, ['store', 'backup', backup])
    expect(made.code, made.err).to.equal(0)
    expectClean('the output of the server', service.output())
    const files = [backup, ...(await filesBelow(place.home))]
    expect(files.some(file => file.endsWith('.db'))).to.equal(true)
    for (const file of files) expectClean(file, await readFile(file))
  })

  it('change in a running server, which reloads for its configuration', async () => {
    const rotated = await svc(place, ['secrets', 'rotate', 'sealed'], ROTATED)
    expect(rotated.code, rotated.err).to.equal(0)
    expect(rotated.err).to.include('was reloaded').and.include('tools.near.token')
    const { body } = await post(`${service.url}/tools/near_return/call`, { arguments: {} })
    expect(JSON.stringify(body)).to.include('[secret]')
    expectClean('an answer after the rotation', JSON.stringify(body))
    expectClean('the log', service.output())
    await chmod(join(place.folder, 'value'), 0o644)
    const doctor = await svc(place, ['doctor'])
    expect(doctor.out + doctor.err).to.include('all users of this machine can read the files of from_file')
  })
})
