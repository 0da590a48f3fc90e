import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { openFakeOllama } from '../examples/local-model/test/fake-ollama.ts'
import { wait } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { sideBySide } from './support/side-by-side.ts'
import { openUpstream } from './support/upstream.ts'

const EXAMPLES = new URL('../examples/', import.meta.url)
const BIN = fileURLToPath(new URL('../node_modules/.bin', import.meta.url))
const PATH = `${BIN}:${process.env.PATH}`
const folderOf = (name: string) => fileURLToPath(new URL(name, EXAMPLES))

/** The words of a script of its package.json, which is what its README says to type. */
async function wordsOf(name: string, script = 'start'): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile(new URL(`${name}/package.json`, EXAMPLES), 'utf8')) as {
    scripts: Record<string, string>
  }
  return scripts[script]!.split(' ')
}

const serve = async (name: string, env: Readonly<Record<string, string>> = {}) =>
  startService({ command: await wordsOf(name), cwd: folderOf(name), env: { PATH, ...env } })

interface Reply {
  readonly response: string
  readonly provider: string
  readonly model: string
  readonly tools_used: readonly { readonly tool: string; readonly success: boolean; readonly error?: string }[]
}
const clientOf = ({ url }: Service) => createClient(url, { keepAlive: false })
const say = async (service: Service, message: string, more: object = {}) =>
  (await clientOf(service).post('/api/v1/chat', { message, ...more })).body as Reply

describe('the examples', () => {
  const it = sideBySide()
  it('are all started here', async () => {
    expect((await readdir(EXAMPLES)).sort()).to.deep.equal([
      'ai-sdk-chat',
      'bridge-community-server',
      'careful-tool',
      'custom-tool',
      'embed',
      'evaluate',
      'fallback',
      'hello-plugin',
      'local-model',
      'model-endpoints',
      'odd-provider',
      'plugins',
      'sandboxed-tool',
      'workflows',
    ])
  })

  // its page is tested in test/client/ai-sdk.spec.ts
  it('ai-sdk-chat asks before it calculates', async () => {
    await using service = await serve('ai-sdk-chat')
    const { tools_used } = await say(service, '/tool calculate {"expression": "6*7"}')
    expect(tools_used[0]!.success).to.equal(false)
    expect(tools_used[0]!.error).to.contain('May this be calculated?')
  })

  it('hello-plugin says hello', async () => {
    await using service = await serve('hello-plugin')
    const client = createClient(service.url, { keepAlive: false })
    expect((await client.get('/hello')).body).to.deep.equal({ hello: 'world' })
    expect((await client.get('/health')).body, 'the curated plugins stay').to.include({ status: 'healthy' })
  })

  it('model-endpoints answers a client on three wires', async () => {
    await using service = await serve('model-endpoints')
    const [program = '', ...words] = await wordsOf('model-endpoints', 'ask')
    const env = { PATH, SVC_URL: service.url }
    const { stdout } = await promisify(execFile)(program, words, { cwd: folderOf('model-endpoints'), env })
    expect(stdout.trim().split('\n')).to.deep.equal([
      'chat completions: You said: Hello',
      'messages, call: weather {"city":"Ulm"}',
      'messages, answer: weather answered: sunny',
      'responses: You said: Again (turn 2)',
    ])
  })

  it('evaluate compares two profiles, one of which cuts its replies', async () => {
    const home = await newHome()
    const [program = '', ...words] = await wordsOf('evaluate')
    const options = { cwd: folderOf('evaluate'), env: { PATH, SVC_HOME: home } }
    const run = promisify(execFile)(program, [...words, '--json'], options)
    const { code, stdout } = await run.then(
      found => ({ ...found, code: 0 }),
      (error: { code: number; stdout: string }) => error
    )
    const { targets } = JSON.parse(stdout) as { targets: { target: string; passed: number; samples: number }[] }
    expect(code).to.equal(1)
    expect(targets.map(({ target, passed, samples }) => [target, passed, samples])).to.deep.equal([
      ['brief', 5, 6],
      ['whole', 6, 6],
    ])
    await rm(home, { recursive: true, force: true })
  })

  it('custom-tool rolls dice in a chat', async () => {
    await using service = await serve('custom-tool')
    const client = createClient(service.url, { keepAlive: false })
    const { body } = await client.post('/api/v1/chat', { message: '/tool roll_dice {"count": 2}' })
    const [ctx] = (body as { tools_used: { tool: string; success: boolean }[] }).tools_used
    expect(ctx).to.include({ tool: 'roll_dice', success: true })
    expect((body as { response: string }).response).to.match(/\d \+ \d = \d/)
    const { tools_used } = (await client.post('/api/v1/chat', { message: '/tool roll_dice {"count": 11}' })).body as {
      tools_used: { success: boolean }[]
    }
    expect(tools_used[0], 'its configuration allows ten dice').to.include({ success: false })
  })

  it('sandboxed-tool makes a table, and finds nothing of the server', async () => {
    await using service = await serve('sandboxed-tool')
    const table = await say(service, '/tool make_table {"rows": [{"a": 1}]}')
    expect(table.tools_used[0]).to.include({ tool: 'make_table', success: true })
    expect(table.response).to.contain('| a |')
    const [look] = (await say(service, '/tool look_around {}')).tools_used
    expect(look).to.include({ tool: 'look_around', success: false })
    expect(look!.error).to.match(/process does not exist in the sandbox/)
  })

  it('bridge-community-server remembers, and leaves out what is denied', async () => {
    const home = await newHome()
    await using service = await serve('bridge-community-server', { MEMORY_FILE: join(home, 'memory.jsonl') })
    // its process is just starting
    const tools = async () => JSON.stringify((await clientOf(service).get('/api/v1/tools')).body)
    while (!(await tools()).includes('memory__search_nodes')) await wait()
    expect(await tools()).to.not.include('memory__delete_entities')
    const entities = [{ name: 'Ada', entityType: 'person', observations: ['counts'] }]
    await say(service, `/tool memory__create_entities ${JSON.stringify({ entities })}`)
    expect((await say(service, '/tool memory__search_nodes {"query": "Ada"}')).response).to.include('counts')
    expect(await readFile(join(home, 'memory.jsonl'), 'utf8')).to.include('Ada')
    await rm(home, { recursive: true, force: true })
  })

  it('workflows finds its workflows, and runs one', async () => {
    await using service = await serve('workflows')
    const client = clientOf(service)
    const { workflows } = (await client.get('/api/v1/workflows')).body as { workflows: { name: string; source: string }[] }
    expect(workflows.map(({ name }) => name)).to.include.members(['check-csv', 'incident-runbook', 'triage-issue'])
    const input = { question: 'Where does a sum begin?', sources: ['sample/notes/sums.md'] }
    const { body } = await client.post('/api/v1/workflows/run', { workflow: 'research-with-critic', input })
    expect(body).to.deep.include({ success: true, status: 'completed' })
    expect((body as { result: object }).result).to.deep.include({ sound: true, sources: input.sources })
  })

  it('embed runs a host inside a program', async () => {
    const [command = '', ...args] = await wordsOf('embed')
    const { stdout } = await promisify(execFile)(command, [...args, 'hello'], {
      cwd: folderOf('embed'),
      env: { PATH, SVC_HOME: '/nowhere' },
    })
    expect(stdout).to.equal('You said: hello, please\n')
  })

  it('fallback shares turns between two providers, and loses none when one of them goes down', async () => {
    await using upstream = await openUpstream((_request, reply) =>
      reply.json(200, { choices: [{ message: { role: 'assistant', content: 'main here' }, finish_reason: 'stop' }] })
    )
    await using service = await serve('fallback', { SVC_PROVIDERS__MAIN__BASE_URL: `${upstream.url}/v1` })
    const seen = new Set<string>()
    // who answers is drawn: three of four, one of four
    for (let turns = 0; seen.size < 2 && turns < 200; turns++) {
      const { provider, response } = await say(service, 'Hello')
      expect(response).to.equal(provider === 'main' ? 'main here' : 'You said: Hello')
      seen.add(provider)
    }
    expect([...seen]).to.have.members(['main', 'spare'])
    await upstream.close()
    for (let turns = 0; turns < 8; turns++)
      expect(await say(service, 'Still there?')).to.include({
        provider: 'spare',
        model: 'local-1',
        response: 'You said: Still there?',
      })
  })

  it('local-model talks to Ollama, whose models use the tools', async () => {
    await using ollama = await openFakeOllama(['llama3.2:3b', 'qwen3:4b'])
    await using service = await serve('local-model', { SVC_PROVIDERS__OLLAMA__BASE_URL: `${ollama.url}/v1` })
    const time = await say(service, 'What time is it in Tokyo?')
    expect(time).to.include({ provider: 'ollama', model: 'llama3.2:3b' })
    expect(time.response).to.match(/^It is .*Asia\/Tokyo/)
    expect(time.tools_used.map(({ tool, success }) => [tool, success])).to.deep.equal([
      ['find_tools', true],
      ['current_time', true],
    ])
    expect(await say(service, 'Hi', { model: 'small' })).to.include({ model: 'qwen3:4b', response: 'qwen3:4b says hello' })
    const stream = await clientOf(service).post('/api/v1/chat/stream', { message: 'Hi' })
    const tokens = stream.events
      .filter(event => event.event === 'token')
      .map(event => (event.data as { content: string }).content)
    expect(tokens).to.deep.equal(['llama3.2:3b ', 'says ', 'hello'])
    const { body } = await clientOf(service).get('/api/v1/providers')
    const { providers } = body as { providers: { name: string; models: string[] }[] }
    expect(providers[0])
      .to.include({ name: 'ollama' })
      .and.to.deep.include({ models: ['llama3.2:3b', 'qwen3:4b'] })
  })

  it('odd-provider answers from a server that no other provider can read', async () => {
    const [program = '', ...words] = await wordsOf('odd-provider', 'model')
    const model = spawn(program, [...words, '0'], {
      cwd: folderOf('odd-provider'),
      env: { PATH },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [line] = (await once(model.stdout, 'data')) as [Buffer]
      await using service = await serve('odd-provider', { SVC_PROVIDERS__PARROT__BASE_URL: line.toString().trim() })
      expect(await say(service, 'Good day to you')).to.include({
        provider: 'parrot',
        model: 'polly',
        response: 'Awk! Good day to you',
      })
      const stream = await clientOf(service).post('/api/v1/chat/stream', { message: 'Hello you', model: 'jack' })
      const tokens = stream.events
        .filter(event => event.event === 'token')
        .map(event => (event.data as { content: string }).content)
      expect(tokens).to.deep.equal(['Awk! ', 'Hello ', 'you'])
    } finally {
      const gone = once(model, 'exit')
      model.kill()
      await gone
    }
  })

  it('careful-tool asks before it acts: what is allowed is done, all else is not', async () => {
    const folder = await newHome()
    const outbox = join(folder, 'outbox.txt')
    await using service = await serve('careful-tool', { SVC_TOOLS__POSTCARDS__OUTBOX: outbox })
    const message = '/tool send_postcard {"to": "Ada", "text": "Greetings"}'
    const sent = () => readFile(outbox, 'utf8').catch(() => '')
    const answered = async (answer: object) => {
      const stream = await clientOf(service).stream({
        method: 'POST',
        path: '/api/v1/chat/stream',
        body: { message, interactive: true },
      })
      const events = await stream.until('ask')
      const [{ request_id }, { call_id, question }] = [events[0]!.data, events.at(-1)!.data] as [
        { request_id: string },
        { call_id: string; question: string },
      ]
      expect(question).to.contain('send_postcard')
      expect(await sent()).to.equal('')
      expect(await clientOf(service).post('/api/v1/chat/answer', { request_id, call_id, ...answer })).to.include({ status: 200 })
      const { data } = (await stream.rest()).events.find(event => event.event === 'tool_result')!
      return data as { success: boolean; error: string | null }
    }
    try {
      const alone = await say(service, message)
      expect(alone.tools_used[0], 'nobody is there to be asked').to.include({ success: false })
      const denied = await answered({ allow: false, reason: 'Ada has moved' })
      expect(denied).to.include({ success: false })
      expect(denied.error).to.contain('Ada has moved')
      expect(await answered({ allow: true })).to.include({ success: true, error: null })
      expect(await sent()).to.equal('{"to":"Ada","text":"Greetings"}\n')
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
