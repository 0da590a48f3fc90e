import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type Answer, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { hostileCommand } from '../support/hostile.ts'
import { inNewHome, type Service, startService } from '../support/service.ts'

const PATH = '/api/v1/traces'
const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER_SPAN = '00f067aa0ba902b7'
const TRACEPARENT = `00-${TRACE_ID}-${CALLER_SPAN}-01`
const TEN = Array.from({ length: 10 }, (_, at) => at)

const MANY_SPANS = fileURLToPath(new URL('../support/many-spans.ts', import.meta.url))
const BROKEN_READ = fileURLToPath(new URL('../support/broken-read.ts', import.meta.url))

interface Traced {
  readonly env?: Readonly<Record<string, string>>
  readonly traces?: object
  readonly workers?: number
  readonly plugins?: readonly string[]
  readonly mcp?: object
}

const WORKFLOW = `name: twice
nodes:
  one: { type: transform, value: 1, next: two }
  two: { type: tool, name: calculate, arguments: { expression: "6 * 7" } }
`

interface Root {
  readonly trace_id: string
  readonly name: string
  readonly status: string
  readonly principal: string
  readonly request_id: string
  readonly conversation_id: string | null
  readonly run_id: string | null
  readonly spans: number
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number }
}
interface SpanRecord {
  readonly trace_id: string
  readonly span_id: string
  readonly parent_span_id?: string
  readonly name: string
  readonly kind: string
  readonly start_time_unix_nano: string
  readonly end_time_unix_nano: string
  readonly status: { readonly code: string; readonly message?: string }
  readonly attributes: Readonly<Record<string, unknown>>
  readonly plugin: string
}
interface Page {
  readonly traces: readonly Root[]
  readonly next_cursor: string | null
}
interface Trace {
  readonly roots: readonly Root[]
  readonly spans: readonly SpanRecord[]
  readonly next_cursor: string | null
}

/** Each request over a connection of its own, so that every worker has its turn. */
function caller({ url }: Service, token?: string) {
  const client = createClient(url, { keepAlive: false })
  const own: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    client.send({ method, path, headers: { ...own, ...headers }, ...(body === undefined ? {} : { body }) })
  const good = <T>({ status, text, body }: Answer): T => {
    expect(status, text).to.equal(200)
    return body as T
  }
  return {
    send,
    chat: async (message: string, headers?: Record<string, string>) =>
      good<{ conversation_id: string; tokens_used: { input: number; output: number } }>(
        await send('POST', '/api/v1/chat', { message }, headers)
      ),
    list: async (query = '') => good<Page>(await send('GET', PATH + query)),
    read: async (id: string, query = '') => good<Trace>(await send('GET', `${PATH}/${id}${query}`)),
  }
}

type Caller = ReturnType<typeof caller>

const named = (spans: readonly SpanRecord[], name: string) => spans.filter(span => span.name === name)
const one = (spans: readonly SpanRecord[], name: string) => {
  const found = named(spans, name)
  expect(found, `${name} in ${spans.map(span => span.name).join(', ')}`).to.have.length(1)
  return found[0]!
}
const codeOf = ({ body }: Answer) => (body as { error_code?: string }).error_code

async function startTraced(home: string, { env = {}, traces = {}, workers = 2, ...config }: Traced = {}): Promise<Service> {
  await mkdir(join(home, 'workflows'), { recursive: true })
  await writeFile(join(home, 'workflows', 'twice.yaml'), WORKFLOW)
  await writeFile(
    join(home, 'svc.config.json'),
    JSON.stringify({ host: { traces_per_second: 1_000 }, traces: { enabled: true, ...traces }, ...config })
  )
  const service = await startService({ home, env, args: ['--workers', String(workers)] })
  if (workers > 1) await service.seen(/"event":"worker_ready"/, workers - 1)
  return service
}

describe('traces', () => {
  it('show a turn with its model calls and tools, from any worker, as soon as the request has ended', () =>
    inNewHome(async home => {
      await using service = await startTraced(home)
      const { chat, list, read } = caller(service)
      const reply = await chat('hello\n/tool calculate {"expression": "6 * 7"}', {
        traceparent: TRACEPARENT,
        'x-request-id': 'mine',
      })
      const pages: string[] = []
      for (const _ of TEN) pages.push(JSON.stringify(await list()))
      expect(new Set(pages).size).to.equal(1)
      const [root, ...others] = (await list()).traces
      expect(others).to.deep.equal([])
      expect(root).to.include({
        trace_id: TRACE_ID,
        parent_span_id: CALLER_SPAN,
        name: 'POST /api/v1/chat',
        status: 'ok',
        request_id: 'mine',
        conversation_id: reply.conversation_id,
      })
      expect(root!.usage).to.deep.equal({
        input_tokens: reply.tokens_used.input,
        output_tokens: reply.tokens_used.output,
      })
      for (const _ of TEN) {
        const { spans, roots } = await read(TRACE_ID)
        expect(roots).to.deep.equal([root])
        expect(spans).to.have.length(root!.spans)
        const request = one(spans, 'POST /api/v1/chat')
        expect(request).to.include({ parent_span_id: CALLER_SPAN, kind: 'server', plugin: '@svc/plugin-http' })
        expect(request.attributes).to.include({ 'http.request.method': 'POST', 'http.response.status_code': 200 })
        const turn = one(spans, 'invoke_agent')
        expect(turn.parent_span_id).to.equal(request.span_id)
        expect(turn.attributes).to.include({ 'gen_ai.conversation.id': reply.conversation_id })
        // the first request of a worker loads the parser of bodies, and a turn waits for the disk
        expect(one(spans, 'receive request')).to.include({ parent_span_id: request.span_id, plugin: '@svc/plugin-http' })
        expect(one(spans, 'receive request').start_time_unix_nano).to.equal(request.start_time_unix_nano)
        expect(one(spans, 'store turn')).to.include({ parent_span_id: turn.span_id, plugin: '@svc/plugin-chat' })
        const [first, second] = named(spans, 'chat local-1')
        expect(first!.attributes).to.deep.include({ 'gen_ai.response.finish_reasons': ['tool_calls'], 'svc.model.round': 1 })
        expect(second!.attributes).to.deep.include({ 'gen_ai.response.finish_reasons': ['stop'], 'svc.model.round': 2 })
        const tool = one(spans, 'execute_tool calculate')
        expect(tool).to.include({ plugin: '@svc/plugin-tools-text' })
        for (const span of [first, second, tool]) expect(span!.parent_span_id).to.equal(turn.span_id)
        expect(BigInt(tool.start_time_unix_nano) <= BigInt(tool.end_time_unix_nano)).to.equal(true)
        expect(JSON.stringify(spans)).not.to.include('hello').and.not.to.include('6 * 7')
      }
    }))

  it('show a run with its steps beside its request, and survive a restart', () =>
    inNewHome(async home => {
      await using before = await startTraced(home)
      const { send, list, read } = caller(before)
      const begun = await send('POST', '/api/v1/workflows/run', { workflow: 'twice' }, { traceparent: TRACEPARENT })
      expect(begun.status, begun.text).to.equal(200)
      const { workflow_id: run } = begun.body as { workflow_id: string }
      const roots = (await list(`?run=${run}`)).traces
      expect(roots.map(({ name, status, run_id }) => ({ name, status, run_id }))).to.deep.equal([
        { name: 'invoke_workflow twice', status: 'ok', run_id: run },
      ])
      const whole = await read(TRACE_ID)
      expect(whole.roots.map(root => root.name)).to.have.members(['POST /api/v1/workflows/run', 'invoke_workflow twice'])
      const work = one(whole.spans, 'invoke_workflow twice')
      expect(work.attributes).to.include({ 'svc.run.status': 'completed' })
      for (const step of ['step one', 'step two']) expect(one(whole.spans, step).parent_span_id).to.equal(work.span_id)
      expect(one(whole.spans, 'execute_tool calculate').parent_span_id).to.equal(one(whole.spans, 'step two').span_id)
      await before.stop()
      await using after = await startTraced(home)
      expect(await caller(after).read(TRACE_ID)).to.deep.equal(whole)
    }))

  it('keep what belongs to others from a caller, also under the same trace id', () =>
    inNewHome(async home => {
      await using service = await startTraced(home, { env: AUTH })
      const create = async (name: string, scopes: string) =>
        (await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home })).out.trim()
      const tokens = [await create('anna', 'chat,read'), await create('ben', 'chat,read'), await create('root', 'read,admin')]
      const [asAnna, asBen, asAdmin] = tokens.map(token => caller(service, token)) as [Caller, Caller, Caller]
      await asAnna.chat('of anna', { traceparent: TRACEPARENT })
      await asBen.chat('of ben', { traceparent: TRACEPARENT })
      await asBen.chat('of ben alone')
      const own = (await asAnna.list()).traces
      expect(own).to.have.length(1)
      const all = (await asAdmin.list()).traces
      expect(all).to.have.length(3)
      const alone = all.find(({ trace_id }) => trace_id !== TRACE_ID)!
      const [a, b] = [await asAnna.read(TRACE_ID), await asBen.read(TRACE_ID)]
      expect(a.roots).to.deep.equal(own)
      const ids = new Set(a.spans.map(span => span.span_id))
      expect(b.spans.filter(span => ids.has(span.span_id))).to.deep.equal([])
      expect((await asAdmin.read(TRACE_ID)).spans).to.have.length(a.spans.length + b.spans.length)
      const stranger = await asAnna.send('GET', `${PATH}/${alone.trace_id}`)
      const unknown = await asAnna.send('GET', `${PATH}/${'0'.repeat(32)}`)
      expect([stranger.status, unknown.status, codeOf(stranger)]).to.deep.equal([404, 404, codeOf(unknown)])
      const other = await asAnna.send('GET', `${PATH}?principal=${encodeURIComponent(alone.principal)}`)
      expect([other.status, codeOf(other)]).to.deep.equal([403, 'FORBIDDEN'])
      expect((await asAdmin.list(`?principal=${encodeURIComponent(alone.principal)}`)).traces).to.have.length(2)
      const { next_cursor: cursor } = await asBen.list('?limit=1')
      expect(cursor).to.be.a('string')
      const borrowed = await asAnna.send('GET', `${PATH}?limit=1&cursor=${cursor}`)
      expect([borrowed.status, codeOf(borrowed)]).to.deep.equal([400, 'INVALID_VALUE'])
    }))

  it('page through many in order, with filters, and refuse what they do not know', () =>
    inNewHome(async home => {
      await using service = await startTraced(home)
      const { chat, send, list } = caller(service)
      for (const at of TEN) await chat(`message ${at}`)
      await send('POST', '/api/v1/chat', { message: 'x', provider: 'unknown' })
      const all = (await list()).traces
      expect(all).to.have.length(TEN.length + 1)
      for (const query of ['', '&q=CHAT', '&status=ok']) {
        const paged: Root[] = []
        let cursor: string | null = null
        do {
          const page: Page = await list(`?limit=3${query}${cursor === null ? '' : `&cursor=${cursor}`}`)
          expect(page.traces.length).to.be.at.most(3)
          paged.push(...page.traces)
          cursor = page.next_cursor
        } while (cursor !== null)
        const wanted = query === '&status=ok' ? all.filter(({ status }) => status === 'ok') : all
        expect(paged).to.deep.equal(wanted)
      }
      expect((await list('?status=error')).traces.map(({ name }) => name)).to.deep.equal(['POST /api/v1/chat'])
      expect((await list('?min_ms=3600000')).traces).to.deep.equal([])
      expect((await list('?from=2999-01-01T00:00:00Z')).traces).to.deep.equal([])
      expect((await list('?to=2999-01-01T00:00:00Z')).traces).to.deep.equal(all)
      for (const [query, hint] of [
        ['limit=0', 'limit'],
        ['limit=many', 'limit'],
        ['status=good', 'status'],
        ['from=yesterday', 'from'],
        ['princpal=x', 'principal'],
        ['cursor=AAAA', 'cursor'],
        [`cursor=${'A'.repeat(2_000)}`, 'cursor'],
        ['conversation=', 'conversation'],
      ]) {
        const answer = await send('GET', `${PATH}?${query}`)
        expect(answer.status, query).to.equal(400)
        expect(answer.text).to.include(hint)
      }
      for (const id of ['x', '%00', '..%2f..', 'A'.repeat(32)])
        expect((await send('GET', `${PATH}/${id}`)).status, id).to.equal(404)
    }))

  it('leave out requests that only read, unless they have failed', () =>
    inNewHome(async home => {
      await using service = await startTraced(home, { workers: 1, plugins: [BROKEN_READ] })
      const { chat, send, list } = caller(service)
      const namesOf = async (query: string) => (await list(query)).traces.map(({ name }) => name)
      await send('GET', '/api/v1/tools')
      await chat('hello')
      await send('HEAD', '/api/v1/tools')
      await send('GET', '/broken')
      const failed = 'GET /broken'
      const all = [failed, 'HEAD /api/v1/tools', 'POST /api/v1/chat', 'GET /api/v1/tools']
      expect(await namesOf('')).to.deep.equal(all)
      expect(await namesOf('?reads=true')).to.deep.equal(all)
      expect(await namesOf('?reads=false')).to.deep.equal([failed, 'POST /api/v1/chat'])
      expect(await namesOf('?reads=false&status=ok')).to.deep.equal(['POST /api/v1/chat'])
      // a cursor holds for its query only
      const { next_cursor: cursor } = await list('?reads=false&limit=1')
      expect(await namesOf(`?reads=false&limit=1&cursor=${cursor!}`)).to.deep.equal(['POST /api/v1/chat'])
      for (const query of [`limit=1&cursor=${cursor!}`, 'reads=no'])
        expect((await send('GET', `${PATH}?${query}`)).status, query).to.equal(400)
    }))

  it('show a job with 10,000 spans whole, page by page', () =>
    inNewHome(async home => {
      await using service = await startTraced(home, { workers: 1, plugins: [MANY_SPANS] })
      const { send, list, read } = caller(service)
      const added = await send('POST', '/api/v1/jobs', { kind: 'test.many_spans', input: { count: 10_000 } })
      expect(added.status, added.text).to.equal(201)
      const { id } = added.body as { id: string }
      const state = async () => ((await send('GET', `/api/v1/jobs/${id}`)).body as { state: string }).state
      while ((await state()) !== 'completed') expect(await state()).to.be.oneOf(['queued', 'running', 'completed'])
      const [root] = (await list('?q=many_spans')).traces
      expect(root).to.include({ name: 'job test.many_spans', status: 'ok', spans: 10_001 })
      const spans: SpanRecord[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Trace = await read(root!.trace_id, `?limit=1000${cursor === '' ? '' : `&cursor=${cursor}`}`)
        expect(page.spans.length).to.be.at.most(1_000)
        spans.push(...page.spans)
        cursor = page.next_cursor
      }
      const job = one(spans, 'job test.many_spans')
      expect(job).to.include({ kind: 'consumer', plugin: '@svc/plugin-jobs' })
      expect(job.attributes).to.include({ 'svc.job.id': id })
      const works = spans.filter(span => span.name.startsWith('work '))
      expect(works.every(span => span.parent_span_id === job.span_id)).to.equal(true)
      expect(new Set(works.map(span => span.name)).size).to.equal(10_000)
    }))

  it('show a call of an MCP server below the tool call', () =>
    inNewHome(async home => {
      await using service = await startTraced(home, { workers: 1, mcp: { clients: [{ name: 'near', ...hostileCommand() }] } })
      const { chat, send, list, read } = caller(service)
      const isListed = async () => (await send('GET', '/api/v1/tools')).text.includes('near__echo')
      while (!(await isListed())) await new Promise(resolve => setTimeout(resolve, 50))
      await chat('/tool near__echo {"text":"a secret of the caller"}')
      const [root] = (await list('?q=/api/v1/chat')).traces
      const { spans } = await read(root!.trace_id)
      const tool = one(spans, 'execute_tool near__echo')
      const call = one(spans, 'tools/call echo')
      expect(call).to.include({ kind: 'client', plugin: '@svc/plugin-mcp-client', parent_span_id: tool.span_id })
      expect(JSON.stringify(spans)).not.to.include('a secret of the caller')
    }))
})
