// Rules that hold for all wires of the model endpoints.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { svcError, systemContext } from '@svc/core'
import {
  Conversations,
  Limits,
  type ModelEvent,
  Providers,
  Selection,
  type Tool,
  Tools,
  type WorkflowDefinition,
  WorkflowDefinitions,
  Workflows,
} from '@svc/core/contracts'
import { item, service } from '@svc/testing'
import { expect } from 'chai'
import { answering, serveEndpoints, WIRES } from './support/model-endpoints.ts'

const ctx = systemContext(new AbortController().signal, 'test')
const LOCAL = 'local/local-1'
const CANARY = 'canary of the model endpoints'
const ECHO: WorkflowDefinition = { name: 'echo', nodes: { a: { type: 'transform', value: 'done: ${{ input.task }}' } } }

async function* answer(): AsyncIterable<ModelEvent> {
  yield { type: 'text', text: 'ok' }
  yield { type: 'usage', usage: { input: 1, output: 1 } }
  yield { type: 'finish', reason: 'stop' }
}

/** All bytes in the files of a folder. */
async function bytesIn(folder: string): Promise<string> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true })
  const read = files.filter(file => file.isFile()).map(file => readFile(join(file.parentPath, file.name), 'latin1'))
  return (await Promise.all(read)).join('\n')
}

describe('a gate that is closed', () => {
  const SHAPES: Readonly<Record<string, { readonly keys: readonly string[]; readonly kind: string }>> = {
    'chat completions': { keys: ['error'], kind: 'unavailable' },
    responses: { keys: ['error'], kind: 'unavailable' },
    messages: { keys: ['error', 'request_id', 'type'], kind: 'overloaded_error' },
    Gemini: { keys: ['error'], kind: 'UNAVAILABLE' },
  }

  it('has the status 503 in the format of each API, and says that a retry helps', async () => {
    const limits: Limits = {
      isActive: async () => true,
      take: async () => {
        throw svcError('UNAVAILABLE', 'the counts of requests cannot be reached')
      },
    }
    await using api = await serveEndpoints({ give: [service(Limits, limits)] })
    for (const wire of WIRES) {
      const { status, body, headers } = await api.ask(wire, LOCAL, 'hi')
      const { keys, kind } = SHAPES[wire.name]!
      expect([status, Object.keys(body).toSorted(), wire.kindOf(body)], wire.name).to.deep.equal([503, keys, kind])
      expect(Number(headers.get('retry-after')), wire.name).to.be.greaterThan(0)
      if (wire.name !== 'Gemini') expect(headers.get('x-should-retry'), wire.name).to.equal('true')
    }
  })
})

describe('a server that stops in the middle of a stream', () => {
  const ENDS: Readonly<Record<string, RegExp>> = {
    'chat completions': /data: \{"error":\{[^\n]*"code":"unavailable"[^\n]*\n\n$/,
    responses: /event: response\.failed\ndata: \{[^\n]*"code":"unavailable"[^\n]*\n\ndata: \[DONE\]\n\n$/,
    messages: /event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error"[^\n]*\n\n$/,
    Gemini: /data: \{"error":\{"code":503,[^\n]*"status":"UNAVAILABLE"[^\n]*\n\n$/,
  }

  for (const wire of WIRES)
    it(`ends it with an error of the API: ${wire.name}`, async () => {
      await using api = await serveEndpoints({ config: { server: { shutdown_timeout: 0.1 } } })
      const response = await api.stream(wire, LOCAL, 'one two three four five\n/pace 60000')
      expect(response.status).to.equal(200)
      const reader = response.body!.getReader()
      let text = Buffer.from((await reader.read()).value!).toString()
      const closing = api.host.close()
      for (let step = await reader.read(); !step.done; step = await reader.read()) text += Buffer.from(step.value).toString()
      await closing
      expect(text).to.match(ENDS[wire.name]!)
      expect(text.includes('[DONE]')).to.equal(wire.name === 'responses')
    })

  it('ends an array of Gemini so that it is still JSON', async () => {
    await using api = await serveEndpoints({ config: { server: { shutdown_timeout: 0.1 } } })
    const [gemini] = WIRES.filter(({ name }) => name === 'Gemini')
    const array = { ...gemini!, path: (model: string) => `/v1beta/models/${model}:streamGenerateContent` }
    const response = await api.stream(array, LOCAL, 'one two three four five\n/pace 60000')
    const reader = response.body!.getReader()
    let text = Buffer.from((await reader.read()).value!).toString()
    const closing = api.host.close()
    for (let step = await reader.read(); !step.done; step = await reader.read()) text += Buffer.from(step.value).toString()
    await closing
    const list = JSON.parse(text) as { error?: { status: string } }[]
    expect(list.at(-1)!.error!.status).to.equal('UNAVAILABLE')
  })
})

describe('the store', () => {
  it('has nothing of calls of models and profiles, on any wire', async () => {
    await using api = await serveEndpoints({ store: 'store-sqlite' })
    for (const wire of WIRES)
      for (const model of [LOCAL, 'profile:default']) {
        const { status, text } = await api.ask(wire, model, CANARY)
        expect([status, text.includes(CANARY)], `${wire.name} ${text}`).to.deep.equal([200, true])
        expect(await (await api.stream(wire, model, CANARY)).text(), wire.name).to.include(' endpoints')
      }
    expect((await api.host.service(Conversations).list({ limit: 10 }, ctx)).conversations).to.deep.equal([])
    expect(await bytesIn(api.home)).to.not.include('canary')
    // the same search finds what is stored
    const stored = await api.post('/v1/responses', { model: LOCAL, input: CANARY, store: true })
    expect(stored.status).to.equal(200)
    expect((await api.host.service(Conversations).list({ limit: 10 }, ctx)).conversations).to.have.length(1)
    expect(await bytesIn(api.home)).to.include('canary')
  })
})

describe('the header Idempotency-Key', () => {
  it('lets a workflow run once for the same request on each wire, and is refused if it is not valid', async () => {
    await using api = await serveEndpoints({ give: [item(WorkflowDefinitions, 'echo', ECHO)] })
    const runs = async () => (await api.host.service(Workflows).runs({ limit: 100 }, ctx)).runs.length
    for (const wire of WIRES) {
      const before = await runs()
      const ask = async (key?: string) => {
        const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key }
        const { status, text } = await api.ask(wire, 'workflow:echo', `hello ${wire.name}`, headers)
        expect([status, text.includes(`done: hello ${wire.name}`)], text).to.deep.equal([200, true])
        return (await runs()) - before
      }
      const key = `key-${wire.name.replaceAll(' ', '-')}`
      expect([await ask(key), await ask(key), await ask(`${key}-2`), await ask()], wire.name).to.deep.equal([1, 1, 2, 3])
      for (const wrong of ['a b', 'k'.repeat(256)]) {
        const { status, text } = await api.ask(wire, 'workflow:echo', 'x', { 'idempotency-key': wrong })
        expect([status, text.includes('idempotency-key')], text).to.deep.equal([400, true])
      }
      expect((await runs()) - before).to.equal(3)
    }
  })
})

describe('a mode', () => {
  it('hides the tools that it does not allow from agents, on each wire', async () => {
    const jot: Tool = {
      description: 'writes',
      category: 'text',
      effects: ['write'],
      parameters: { type: 'object' },
      call: async () => ({ content: [{ type: 'text', text: 'done' }] }),
    }
    const provider = answering(answer)
    await using api = await serveEndpoints({
      give: [item(Providers, 'odd', provider), item(Tools, 'jot', jot), item(Tools, 'look', { ...jot, effects: ['read'] })],
      profiles: {
        builder: { provider: 'odd', model: 'm', tools: ['jot', 'look'] },
        planner: { provider: 'odd', model: 'm', tools: ['jot', 'look'], mode: 'plan' },
      },
    })
    const offered = async (model: string) => {
      const seen: (string[] | undefined)[] = []
      for (const wire of WIRES) {
        expect((await api.ask(wire, model, 'hi')).status, wire.name).to.equal(200)
        seen.push(provider.requests.at(-1)!.tools?.map(({ name }) => name))
      }
      return seen
    }
    expect(await offered('profile:builder')).to.deep.equal(WIRES.map(() => ['jot', 'look']))
    expect(await offered('profile:planner')).to.deep.equal(WIRES.map(() => ['look']))
    await api.host.service(Selection).switchMode('plan', ctx)
    expect(await offered('profile:builder')).to.deep.equal(WIRES.map(() => ['look']))
  })
})

describe('the limit of a body', () => {
  const LIMIT = 32 * 1024 * 1024
  const ROUTES: readonly (readonly [path: string, head: string, tail: string])[] = [
    ['/v1/embeddings', '{"model":"nope","input":"', '"}'],
    ['/v1/messages/count_tokens', '{"model":"nope","messages":[{"role":"user","content":"', '"}]}'],
  ]
  it('is 32 MiB on the routes that embed and count, too', async () => {
    await using api = await serveEndpoints()
    for (const [path, head, tail] of ROUTES) {
      const bodyOf = (size: number) => head + 'x'.repeat(size - head.length - tail.length) + tail
      expect((await api.post(path, bodyOf(LIMIT + 1))).status, path).to.equal(413)
      // it is read, and the model does not exist
      expect((await api.post(path, bodyOf(LIMIT))).status, path).to.equal(404)
    }
  }).timeout(120_000)
})

describe('the time limits of models.calls', () => {
  const never = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
    })
  const silent = answering(async function* (signal) {
    await never(signal)
    yield* answer()
  })
  const stuck = answering(async function* (signal) {
    yield { type: 'text', text: 'so ' }
    await never(signal)
  })
  const endless = answering(async function* (signal) {
    while (!signal.aborted) {
      yield { type: 'text', text: 'more ' }
      await new Promise(resolve => setImmediate(resolve))
    }
  })

  const KINDS: Readonly<Record<string, unknown>> = {
    'chat completions': 'upstream_timeout',
    responses: 'upstream_timeout',
    messages: 'timeout_error',
    Gemini: 'DEADLINE_EXCEEDED',
  }
  for (const [key, provider, what] of [
    ['first_token_timeout_ms', silent, 'for the first event'],
    ['token_timeout_ms', stuck, 'between two events'],
    ['timeout_ms', endless, 'of the whole call'],
  ] as const)
    it(`end a call on each wire: ${key}, ${what}`, async () => {
      await using api = await serveEndpoints({
        give: [item(Providers, 'odd', provider)],
        config: { models: { calls: { [key]: 300 } }, chat: { policy: { attempts: 1 } } },
      })
      for (const wire of WIRES) {
        const { status, body, text } = await api.ask(wire, 'odd/m', 'hi')
        expect([status, wire.kindOf(body)], `${wire.name} ${text}`).to.deep.equal([504, KINDS[wire.name]])
      }
    })
})

describe('the cache', () => {
  it('answers what svc translates on each wire, and not what it sends as it is', async () => {
    const provider = answering(answer)
    const same = { ...answering(answer), features: { ...provider.features, protocol: 'openai-chat' } }
    await using api = await serveEndpoints({
      give: [item(Providers, 'odd', provider), item(Providers, 'same', same)],
      config: { chat: { cache: { enabled: true } } },
      profiles: { coder: { provider: 'same', model: 'm' } },
    })
    for (const wire of WIRES) {
      const before = provider.requests.length
      for (let asked = 0; asked < 2; asked++) expect((await api.ask(wire, 'odd/m', `hello by ${wire.name}`)).status).to.equal(200)
      expect(provider.requests.length - before, wire.name).to.equal(1)
    }
    const [chat, responses] = WIRES
    const calls = async (wire: (typeof WIRES)[number], model: string) => {
      const before = same.requests.length
      for (let asked = 0; asked < 2; asked++) await api.ask(wire, model, `again by ${wire.name}`)
      return same.requests.length - before
    }
    expect(await calls(chat!, 'same/m')).to.equal(2)
    expect(await calls(chat!, 'profile:coder')).to.equal(1)
    expect(await calls(responses!, 'same/m')).to.equal(1)
  })
})
