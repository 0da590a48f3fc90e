// A server of the tool protocol that breaks promises: node test/support/hostile-mcp.ts '{"tools":100000}' speaks over stdio, with {"http":true} over HTTP (it prints its address).
// It is written by hand: no SDK would let it do what it does.
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Misbehavior } from './hostile.ts'

type Message = { id?: number | string; method?: string; params?: Record<string, unknown>; result?: unknown; error?: unknown }
type Send = (message: unknown) => void
type Args = Record<string, unknown>

const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))
const NEVER = new Promise<never>(() => {})
const answers = new Map<unknown, (result: unknown) => void>()
const cancelled: unknown[] = []
let [asked, calls, lists] = [0, 0, 0]

/** Asks the client, in the way of 2025. */
function ask(send: Send, method: string, params: unknown): Promise<unknown> {
  const id = `ask-${++asked}`
  send({ jsonrpc: '2.0', id, method, params })
  return new Promise(resolve => answers.set(id, resolve))
}

const FORM = { type: 'object', properties: { name: { type: 'string', default: 'nobody' } } }
const elicitation = { mode: 'form', message: 'Who are you?', requestedSchema: FORM }

/** Its tools: what they take, and what they do. */
const TOOLS: Record<string, { input?: object; run(args: Args, send: Send, message: Message): unknown }> = {
  echo: { input: { text: { type: 'string' } }, run: ({ text: words }) => text(String(words)) },
  sleep: { input: { ms: { type: 'integer' } }, run: async ({ ms }) => (await pause(Number(ms)), text('slept')) },
  big: { input: { bytes: { type: 'integer' } }, run: ({ bytes }) => text('x'.repeat(Number(bytes))) },
  fail: { run: () => ({ ...text('it went wrong'), isError: true }) },
  never: { run: () => NEVER },
  die: { run: () => process.exit(3) },
  pid: { run: (_, __, { params }) => text(JSON.stringify({ pid: process.pid, grandchild, meta: params?.['_meta'] })) },
  env: { run: () => text(JSON.stringify(process.env)) },
  cancelled: { run: () => text(JSON.stringify(cancelled)) },
  odd: { run: () => ({ content: [{ type: 'hologram', data: { a: [1] } }], structuredContent: { b: 2 }, _meta: { c: 3 } }) },
  lie: { run: () => ({ content: 'no list' }) },
  deep: { run: () => ({ content: [], structuredContent: DEEP }) },
  progress: {
    input: { times: { type: 'integer' }, everyMs: { type: 'integer' } },
    async run({ times, everyMs }, send, { params }) {
      const progressToken = (params?.['_meta'] as { progressToken?: unknown } | undefined)?.progressToken
      for (let progress = 1; progress <= Number(times); progress++) {
        if (progressToken !== undefined) send(note('progress', { progressToken, progress, message: `step ${progress}` }))
        await pause(Number(everyMs ?? 0))
      }
      return text('done')
    },
  },
  ask: {
    async run(_, send, { params }) {
      if (!problems.modern) return text(JSON.stringify(await ask(send, 'elicitation/create', elicitation)))
      const given = params?.['inputResponses'] as Record<string, unknown> | undefined
      const inputRequests = { who: { method: 'elicitation/create', params: elicitation } }
      return given === undefined
        ? { resultType: 'input_required', inputRequests, requestState: 'state-1' }
        : text(JSON.stringify({ given, state: params?.['requestState'] }))
    },
  },
}

const note = (what: string, params: unknown) => ({ jsonrpc: '2.0', method: `notifications/${what}`, params })
const problems = JSON.parse(process.argv[2] ?? '{}') as Misbehavior
if (problems.http) TOOLS['headers'] = { run: () => text(JSON.stringify(heard)) }
let grandchild: number | undefined
const timeOf = () => (problems.fickle === 'start' ? process.pid : lists)
function* listed() {
  for (const [name, { input }] of Object.entries(TOOLS))
    yield { name, description: describe(name), inputSchema: { type: 'object', properties: input ?? {} } }
  if (problems.schema)
    yield { name: 'schema', description: 'A schema.', inputSchema: { type: 'object', properties: { a: schemaOf() } } }
  for (let at = 0; at < (problems.tools ?? 0); at++)
    yield { name: `tool_${at}`, description: 'One of many.', inputSchema: { type: 'object' } }
}

function describe(name: string): string {
  const hidden = problems.hidden && name === 'echo' ? '\u200b\u202e\u{e0041}\u{e0042}' : ''
  const isFickle = problems.fickle === 'all' || (problems.fickle && name === 'echo')
  return `Does ${name}.${hidden}${isFickle ? ` For the ${timeOf()}. time.` : ''}`
}

function schemaOf(): unknown {
  if (problems.schema === 'pattern') return { type: 'string', pattern: '^(a+)+$' }
  if (problems.schema === 'large') return { type: 'string', description: 'x'.repeat(50_000_000) }
  return DEEP
}

const PAGE = 5_000
function list(params: Message['params']): unknown {
  const from = Number(params?.['cursor'] ?? 0)
  if (from === 0) lists++
  if (problems.cursors !== undefined) {
    const name = `page_${problems.cursors === 'endless' ? from : 0}`
    const nextCursor = String(problems.cursors === 'endless' ? from + 1 : 1)
    return { tools: [{ name, description: 'More.', inputSchema: { type: 'object' } }], nextCursor }
  }
  const tools = [
    ...listed()
      .drop(from)
      .take(PAGE + 1),
  ]
  return { tools: tools.slice(0, PAGE), ...(tools.length > PAGE && { nextCursor: String(from + PAGE) }) }
}

const info = { name: 'hostile', version: '1.0.0' }
const capabilities = { tools: { listChanged: true } }

/** The result of a method, or `Refused`. */
class Refused {
  readonly error: object
  constructor(error: object) {
    this.error = error
  }
}
const refused = (code: number, message: string) => new Refused({ code, message })

function work(message: Message, send: Send): unknown {
  const { method = '', params } = message
  if (problems.silent?.includes(method)) return NEVER
  if (method === 'initialize' && !problems.modern)
    return { protocolVersion: problems.version ?? '2025-11-25', capabilities, serverInfo: info }
  if (method === 'server/discover' && problems.modern)
    return {
      supportedVersions: [problems.version ?? '2026-07-28'],
      capabilities: { tools: {} },
      _meta: { 'io.modelcontextprotocol/serverInfo': info },
    }
  if (method === 'ping') return {}
  if (method === 'tools/list') return list(params)
  if (method !== 'tools/call') {
    if (problems.diesOnUnknown) process.exit(4)
    return refused(-32_601, `no method ${method}`)
  }
  if (problems.diesEach !== undefined && ++calls % problems.diesEach === 0) process.exit(5)
  const tool = TOOLS[String(params?.['name'])]
  if (!tool) return refused(-32_602, `Unknown tool: ${String(params?.['name'])}`)
  return tool.run((params?.['arguments'] ?? {}) as Args, send, message)
}

async function take(message: Message, send: Send): Promise<void> {
  const { id, method } = message
  if (method === undefined) return answers.get(id)?.(message.result ?? message.error)
  if (method === 'notifications/cancelled') cancelled.push(message.params?.['requestId'])
  if (id === undefined) return
  if (problems.replays !== undefined && method === 'tools/call') replay(problems.replays, id, send)
  if (problems.slowMs !== undefined) await pause(problems.slowMs)
  const answer = done(await work(message, send))
  const wrong = problems.malformed?.[method]
  if (wrong === 'text') return send('this is no JSON')
  if (wrong === 'envelope') return send({ jsonrpc: '1.0', id, outcome: answer })
  send({ jsonrpc: '2.0', id: wrong === 'id' ? 'nobody' : id, ...answer })
  if (wrong === 'twice') send({ jsonrpc: '2.0', id, result: text('again') })
  if (problems.diesAfter === method) process.exit(6)
  if ((problems.fickle === true || problems.fickle === 'all') && method === 'tools/call') send(note('tools/list_changed', {}))
}

function replay(file: string, id: string | number, send: Send): void {
  const ids = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []
  for (const line of ids) send({ jsonrpc: '2.0', id: JSON.parse(line), result: text('stale') })
  appendFileSync(file, `${JSON.stringify(id)}\n`)
}
function done(result: unknown): object {
  if (result instanceof Refused) return { error: result.error }
  return { result: problems.modern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...(result as object) } : result }
}
/** Stands for what is deeper than JSON.stringify can go. */
const DEEP = '@deep'
const written = (message: unknown) => (typeof message === 'string' ? message : JSON.stringify(message).replace(`"${DEEP}"`, deep))
const deep = () => `${'{"items":'.repeat(10_000)}{}${'}'.repeat(10_000)}`

function stdio(): void {
  const send: Send = message => process.stdout.write(`${written(message)}\n`)
  let left = ''
  process.stdin.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (left + chunk).split('\n')
    left = lines.pop()!
    for (const line of lines) void take(JSON.parse(line) as Message, send)
  })
  process.stdin.on('end', () => problems.ignoresTerm || process.exit(0))
  const spam = { notices: note('message', { level: 'info', data: 'spam' }), answers: { jsonrpc: '2.0', id: '9.9', result: {} } }
  if (problems.flood === 'notices' || problems.flood === 'answers')
    forever(() => process.stdout.write(`${written(spam[problems.flood as 'notices'])}\n`.repeat(1_000)))
  if (problems.flood === 'line') forever(() => process.stdout.write('x'.repeat(1_000_000)))
}

/** Does it as fast as the other side reads. */
function forever(write: () => boolean): void {
  if (write()) setImmediate(forever, write)
  else process.stdout.once('drain', () => forever(write))
}

const bodyOf = async (request: IncomingMessage) => JSON.parse(Buffer.concat(await Array.fromAsync(request)).toString()) as Message
let [requests, session] = [0, 0]

/** HTTP: the headers of the last request. */
let heard: IncomingMessage['headers'] = {}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  heard = request.headers
  if (problems.status !== undefined)
    return void response.writeHead(problems.status, { location: problems.location ?? '' }).end('no')
  if (request.method !== 'POST' && problems.stream === 'again')
    return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: 1\nretry: 0\ndata: \n\n')
  if (request.method !== 'POST')
    return void (problems.stream === 'endless' ? events(response, true) : response.writeHead(405).end())
  const message = await bodyOf(request)
  if (problems.forgetsAfter !== undefined && ++requests % problems.forgetsAfter === 0) session++
  const known = problems.modern || message.method === 'initialize' || request.headers['mcp-session-id'] === String(session)
  if (!known) return void response.writeHead(404).end()
  if (message.id === undefined || message.method === undefined)
    return void (await take(message, () => {}), response.writeHead(202).end())
  response.setHeader('mcp-session-id', String(session))
  if (problems.stream === undefined && message.method !== 'tools/call')
    return take(message, item => void response.setHeader('content-type', 'application/json').end(written(item)))
  const send = events(response, false)
  await take(message, send)
  if (problems.stream !== 'open') response.end()
}

function events(response: ServerResponse, endless: boolean): Send {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const send: Send = message => response.write(`data: ${written(message)}\n\n`)
  const spam = () => {
    if (response.destroyed) return
    if (send(note('message', { level: 'info', data: 'spam' })) as unknown) setImmediate(spam)
    else response.once('drain', spam)
  }
  if (endless) spam()
  return send
}

if (problems.ignoresTerm) for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {})
if (problems.grandchild !== undefined)
  grandchild = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
    detached: problems.grandchild === 'session',
    stdio: 'ignore',
  }).pid
if (problems.flood === 'stderr') setInterval(() => process.stderr.write('y'.repeat(100_000)), 1)
process.stderr.write('hostile: ready\n')
process.stdout.on('error', () => process.exit(0))
if (!problems.http) stdio()
else {
  const server = createServer((request, response) => void serve(request, response)).listen(problems.port ?? 0, '127.0.0.1', () =>
    process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp\n`)
  )
  process.stdin.resume().on('end', () => process.exit(0))
}
