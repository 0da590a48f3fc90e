import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemContext } from '@svc/core'
import { reachServer, type ReloadResult } from '@svc/runtime'
import { freePort } from '@svc/testing/engines'
import { expect } from 'chai'
import { askOnce } from './support/ask-once.ts'
import { wait } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { startReloadLoad } from './support/reload-load.ts'
import { inNewHome, startService } from './support/service.ts'
import { sideBySideIn } from './support/side-by-side.ts'
import { configureFew } from './support/tides.ts'

const ctx = () => systemContext(AbortSignal.timeout(60_000))

async function reload(home: string): Promise<ReloadResult> {
  using server = await reachServer(home)
  return await server.control.reload(ctx())
}

/** With few plugins: a worker starts in three quarters of the time. The first two tests have all. */
const configure = (home: string, value: { readonly plugins?: readonly string[]; readonly [section: string]: unknown } = {}) =>
  configureFew(home, value, ['metrics'])
const get = (url: string, path: string) => createClient(url, { keepAlive: false }).get(path)
const post = (url: string, path: string, body: unknown) => createClient(url, { keepAlive: false }).post(path, body)
const states = ({ workers }: ReloadResult) => workers.map(worker => `${worker.state} ${worker.generation}`)

describe('a reload', () => {
  const it = sideBySideIn(inNewHome)

  it('fails no request under load, and lets every stream end by itself', async home => {
    await using service = await startService({ home, args: ['--workers', '2'] })
    await service.seen(/"event":"worker_ready"/)
    const load = startReloadLoad(service.url, { gentle: true })
    for (let round = 1; round <= 2; round++) {
      await load.more(30)
      expect((await reload(home)).problems).to.deep.equal([])
    }
    await load.more(30)
    await load.stop()
    expect(load.failures).to.deep.equal([])
    expect(load.done.streams).to.be.above(0)
    expect(service.output()).to.not.match(/"how":"SIG/)
  }).timeout(120_000)

  it('applies the new configuration and keeps the state', async home => {
    await writeFile(join(home, 'profiles.yaml'), 'profiles: { default: {}, other: {} }\n')
    await using service = await startService({ home })
    await post(service.url, '/api/v1/profile/switch', { profile: 'other' })
    await post(service.url, '/api/v1/mode/switch', { mode: 'plan' })
    const before = (await get(service.url, '/api/v1/status')).body as { requests_total: number }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ chat: { message_limit: 10 } }))
    expect(states(await reload(home)).at(-1)).to.equal('ready 1')
    expect((await post(service.url, '/api/v1/chat', { message: 'longer than ten' })).status).to.equal(400)
    expect((await get(service.url, '/api/v1/config/effective')).body).to.include({ profile: 'other', mode: 'plan' })
    const after = (await get(service.url, '/api/v1/status')).body as { requests_total: number }
    expect(after.requests_total).to.be.above(before.requests_total)
  })

  it('decreases no counter while old workers end', async home => {
    await configure(home)
    await using service = await startService({ home, args: ['--workers', '2'] })
    await service.seen(/"event":"worker_ready"/)
    let over = false
    const watch = async () => {
      let last = new Map<string, number>()
      while (!over) {
        const now = countersIn((await get(service.url, '/metrics')).text)
        for (const [series, value] of last) expect(now.get(series), series).to.be.at.least(value)
        last = now
        await wait()
      }
      return last
    }
    const watching = watch()
    watching.catch(() => {}) // told below
    for (let round = 1; round <= 2; round++) expect((await reload(home)).problems).to.deep.equal([])
    over = true
    const series = await watching
    const own = [...series].filter(([name]) => name.startsWith('svc_requests_total{') && name.includes('"/metrics"'))
    expect(own.map(([, value]) => value)[0]).to.be.above(10)
    const families = new Set([...series.keys()].map(name => name.replace(/\{.*/, '')))
    expect([...families]).to.include.members([
      'svc_requests_total',
      'svc_request_duration_seconds_count',
      'process_cpu_seconds_total',
    ])
  }).timeout(60_000)

  it('does not extend a stop beyond server.shutdown_timeout', async home => {
    await configure(home, { server: { shutdown_timeout: 1 } })
    await using service = await startService({ home })
    const body = { message: `/pace 300\n${'word '.repeat(300)}` }
    const open = await createClient(service.url, { keepAlive: false }).stream({
      method: 'POST',
      path: '/api/v1/chat/stream',
      body,
    })
    const [start] = await open.until('start')
    await open.until('token')
    await reload(home)
    expect(await service.stop()).to.equal(0)
    expect(service.output()).to.not.match(/"how":"SIG/)
    await open.rest().catch(() => {})
    // what the old worker was cut off in has been kept
    await using next = await startService({ home })
    const { conversation_id } = start!.data as { conversation_id: string }
    const { body: kept } = await get(next.url, `/api/v1/conversations/${conversation_id}`)
    expect((kept as { messages: { status?: string }[] }).messages.at(-1)).to.include({ status: 'cancelled' })
  })

  it('with an invalid configuration keeps the old workers and reports all problems, also at SIGHUP', async home => {
    await configure(home)
    await using service = await startService({ home })
    await configure(home, { server: { hots: 'x' }, chatt: { timeout_ms: 1 } })
    const result = await reload(home)
    expect(result.problems.map(problem => problem.message).join())
      .to.contain('hots')
      .and.contain('chatt')
    expect(states(result)).to.deep.equal(['ready 0'])
    expect((await get(service.url, '/health')).status).to.equal(200)
    const failed = service.output().split('"event":"reload_failed"').length - 1
    service.child.kill('SIGHUP')
    await service.seen(/"event":"reload_failed".*hots/, failed + 1)
    expect((await get(service.url, '/health')).status).to.equal(200)
    await configure(home)
    expect((await reload(home)).problems).to.deep.equal([])
  })

  it('takes up another number of workers, and another port', async home => {
    const [first, second] = [await freePort(), await freePort()]
    await configure(home, { server: { port: first } })
    await using _service = await startService({ home, ownPort: true })
    await configure(home, { server: { port: second, workers: 2 } })
    const { url, workers } = await reload(home)
    expect(url).to.equal(`http://127.0.0.1:${second}`)
    expect(workers.filter(worker => worker.state === 'ready')).to.have.length(2)
    expect((await get(url, '/health')).status).to.equal(200)
    expect(await askOnce(first), 'the port that is listened at no more').to.equal('refused')
    using server = await reachServer(home, { port: second })
    expect(server.info.port).to.equal(second)
  })

  it('begins at SIGHUP', async home => {
    await configure(home)
    await using service = await startService({ home })
    service.child.kill('SIGHUP')
    await service.seen(/"event":"reloaded"/)
    expect((await get(service.url, '/health')).status).to.equal(200)
  })

  it('begins by itself with --watch when configuration, profiles or a linked plugin change', async home => {
    const folder = join(home, 'linked')
    const plugin = (text: string) =>
      writeFile(
        join(folder, 'index.mjs'),
        `export default { requires: {}, optional: {}, setup(scope) { scope.add(${ROUTES}, 'x', { method: 'GET', path: '/x', summary: 'X', scope: 'read', handle: async () => ({ text: '${text}' }) }) } }\n`
      )
    await mkdir(folder)
    await plugin('one')
    await writeFile(
      join(folder, 'package.json'),
      JSON.stringify({
        name: 'linked',
        version: '1.0.0',
        type: 'module',
        main: 'index.mjs',
        svc: { api: 1, kind: 'surface', contributes: { routes: { x: { method: 'GET', path: '/x', scope: 'read' } } } },
      })
    )
    await configure(home, { plugins: ['./linked'] })
    await using service = await startService({ home, args: ['--watch'] })
    const x = async () => (await get(service.url, '/x')).text
    expect(await x()).to.equal('one')
    await plugin('two')
    await service.seen(/"event":"reloaded"/, 1)
    expect(await x()).to.equal('two')
    await configure(home, { plugins: ['./linked'], chat: { message_limit: 'x' } })
    await service.seen(/"event":"reload_failed"/, 1)
    expect(await x()).to.equal('two')
    await configure(home, { plugins: ['./linked'], chat: { message_limit: 5 } })
    await service.seen(/"event":"reloaded"/, 2)
    await writeFile(join(home, 'profiles.yaml'), 'profiles: { default: {}, new: {} }\n')
    await service.seen(/"event":"reloaded"/, 3)
    expect((await get(service.url, '/api/v1/config/effective')).body).to.deep.include({ profiles: ['default', 'new'] })
  }).timeout(60_000)
})

/** What may never fall, by series: counters, and what histograms count. */
function countersIn(text: string): Map<string, number> {
  const kinds = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind]) => [name, kind]))
  const isCounter = (name: string) =>
    kinds.get(name) === 'counter' || kinds.get(name.replace(/_(bucket|sum|count)$/, '')) === 'histogram'
  const lines = [...text.matchAll(/^(([a-zA-Z_:][\w:]*)(?:\{.*\})?) (\S+)$/gm)]
  return new Map(
    lines.flatMap(([, series = '', name = '', value]) => (isCounter(name) ? [[series, Number(value)] as const] : []))
  )
}

const ROUTES = `{ what: 'slot', local: false, name: 'routes', api: 1, methods: { handle: 'call', stream: 'stream' }, changed: { id: 'routes.changed', kind: 'series' } }`
