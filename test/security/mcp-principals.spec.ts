import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { asked, begin, type Json, messages, type WireSession } from '../../plugins/mcp/server/test/support/wire.ts'
import { runSvc } from '../support/command.ts'
import { newHome, type Service, startService } from '../support/service.ts'

const DECEIVER = fileURLToPath(new URL('../support/deceiver.mjs', import.meta.url))
/** A plugin with a resource that anna alone may read, and a tool by which it changes. */
const NOTES = `import { definePlugin } from '@svc/core'
import { Resources, Tools } from '@svc/core/contracts'
let touched = Promise.withResolvers()
export default definePlugin({
  setup({ add }) {
    add(Resources, 'notes', {
      uri: 'notes://anna',
      async read(uri, { principal }) {
        if (!principal.id.includes('anna')) throw Object.assign(new Error('unknown'), { code: 'RESOURCE_UNKNOWN' })
        return [{ uri, text: 'a note' }]
      },
      async *changes({ signal }) {
        const aborted = new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
        while (!signal.aborted) {
          await Promise.race([touched.promise, aborted])
          touched = Promise.withResolvers()
          if (!signal.aborted) yield 'notes://anna'
        }
      },
    })
    add(Tools, 'touch', {
      description: 'Changes the note.', category: 'text', effects: [], parameters: { type: 'object' },
      call: async () => (touched.resolve(), { content: [{ type: 'text', text: 'touched' }] }),
    })
  },
})`
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('two principals of the tool server', () => {
  let service: Service
  let [anna, ben] = ['', '']
  before(async function () {
    this.timeout(30_000)
    const home = await newHome()
    const clients = [{ name: 'one', command: process.execPath, args: [DECEIVER] }]
    await mkdir(join(home, 'notes'))
    const svc = { api: 1, kind: 'tool', contributes: { tools: ['touch'], resources: ['notes'] } }
    const manifest = { name: 'svc-plugin-notes', version: '1.0.0', type: 'module', main: 'index.js', svc }
    await writeFile(join(home, 'notes', 'package.json'), JSON.stringify(manifest))
    await writeFile(join(home, 'notes', 'index.js'), NOTES)
    const config = { plugins: [join(home, 'notes')], mcp: { server: { enabled: true }, clients } }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    const env = { SVC_API_KEY: 'the-key-of-the-server', SVC_SERVER__AUTH__ENABLED: 'true' }
    service = await startService({ home, cwd: home, env })
    const create = async (name: string) =>
      (await runSvc(['tokens', 'create', '--name', name, '--scope', 'tools'], { home, share: true })).out.trim()
    ;[anna, ben] = [await create('anna'), await create('ben')]
    for (;;) {
      const { body } = await asked(service.url, 'tools/list', {}, { headers: bearer(anna) })
      if (JSON.stringify(body).includes('one__hold')) break
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    await rm(service.home, { recursive: true, force: true })
  })

  const open = (token: string, capabilities: Json = {}) => begin(service.url, { headers: bearer(token), capabilities })
  const call = (session: WireSession, name: string, args: Json, id: number, progressToken = 'p') =>
    session.request('tools/call', { name: `one__${name}`, arguments: args, _meta: { progressToken } }, id)

  /** Begins a call, and answers once its tool runs; what comes on its stream is gathered. */
  async function hold(session: WireSession, word: string, id: number) {
    const params = { name: 'one__hold', arguments: { word }, _meta: { progressToken: 'p' } }
    const response = await session.send({ id, method: 'tools/call', params })
    const items = messages(response)
    const seen: Json[] = []
    const { value } = await items.next()
    seen.push(value as Json)
    const rest = (async () => {
      for await (const item of items) seen.push(item)
    })()
    return { seen, rest }
  }

  it('cannot go on with a call of another that waits for an answer', async () => {
    const question = { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
    const params = { name: 'one__ask', arguments: { params: question } }
    const capabilities = { elicitation: {} }
    const { body } = await asked(service.url, 'tools/call', params, { capabilities, headers: bearer(anna) })
    const { requestState, inputRequests } = body.result as { requestState: string; inputRequests: Json }
    const answers = Object.fromEntries(Object.keys(inputRequests).map(key => [key, { action: 'accept', content: { name: 'x' } }]))
    const goOn = (token: string) =>
      asked(
        service.url,
        'tools/call',
        { ...params, inputResponses: answers, requestState },
        { capabilities, headers: bearer(token) }
      )
    expect(JSON.stringify((await goOn(ben)).body)).to.contain('no longer open')
    expect(JSON.stringify((await goOn(anna)).body)).to.contain('accept')
  })

  it('cannot use, listen to or end the session of another: it is a 404 like an unknown one', async () => {
    const session = await open(anna)
    const stolen = {
      'mcp-session-id': session.id,
      ...bearer(ben),
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    }
    const unknown = { ...stolen, 'mcp-session-id': `${session.id.slice(0, -4)}0000` }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} })
    for (const init of [{ method: 'POST', body }, { method: 'GET' }, { method: 'DELETE' }]) {
      const answers = await Promise.all([stolen, unknown].map(headers => fetch(`${service.url}/mcp`, { ...init, headers })))
      expect(answers.map(answer => answer.status)).to.deep.equal([404, 404])
      const [first, two] = await Promise.all(answers.map(answer => answer.text()))
      expect(first).to.equal(two)
    }
    expect((await session.request('tools/list')).body.result).to.have.property('tools')
    await session.end()
  })

  it('cannot cancel a call of another by its id, and gets none of its progress', async () => {
    const [hers, his] = [await open(anna), await open(ben)]
    const stream = await his.open()
    const heard: Json[] = []
    const listening = (async () => {
      for await (const message of messages(stream)) heard.push(message)
    })().catch(() => {})
    const held = await hold(hers, 'word-of-anna', 7)
    expect(held.seen[0]).to.have.nested.property('params.message', 'word-of-anna')
    const mine = await hold(his, 'word-of-ben', 7)
    await his.send({ method: 'notifications/cancelled', params: { requestId: 7 } })
    await his.send({ method: 'notifications/cancelled', params: { requestId: '7' } })
    await call(his, 'release', {}, 9)
    await held.rest
    expect(JSON.stringify(held.seen.at(-1)))
      .to.contain('word-of-anna')
      .and.contain('result')
    await his.end()
    await Promise.all([listening, mine.rest])
    expect(JSON.stringify([heard, mine.seen])).to.not.contain('anna')
    await hers.end()
  })

  it('receive no messages and no questions of a tool server for a cancelled call of another principal', async () => {
    const [hers, his] = [await open(anna, { elicitation: {} }), await open(ben, { elicitation: {} })]
    await his.request('logging/setLevel', { level: 'debug' }, 2)
    const held = await hold(hers, 'word-of-anna', 7)
    const mine = await hold(his, 'word-of-ben', 7)
    await hers.send({ method: 'notifications/cancelled', params: { requestId: 7 } })
    await held.rest
    // its answer comes after all that was said of the cancelled call
    await call(his, 'echo', { text: 'later' }, 8)
    await call(his, 'release', {}, 9)
    await mine.rest
    expect(JSON.stringify(mine.seen)).to.contain('word-of-ben').and.not.contain('anna')
    await Promise.all([hers.end(), his.end()])
  })

  it('do not learn when a resource changes that they cannot read', async () => {
    const [hers, his] = [await open(anna), await open(ben)]
    const streams = [messages(await hers.open()), messages(await his.open())] as const
    const follow = { uri: 'notes://anna' }
    const refused = (await his.request('resources/subscribe', follow, 2)).body
    expect(refused.error?.message).to.equal('Resource not found')
    expect((await his.request('resources/subscribe', { uri: 'notes://none' }, 2)).body.error?.message).to.equal(
      'Resource not found'
    )
    const listen = { notifications: { resourceSubscriptions: ['notes://anna'] } }
    expect((await asked(service.url, 'subscriptions/listen', listen, { headers: bearer(ben) })).body.error?.message).to.equal(
      'Resource not found'
    )
    expect((await hers.request('resources/subscribe', follow, 2)).body).to.have.property('result')
    await hers.request('tools/call', { name: 'touch', arguments: {} }, 3)
    expect((await streams[0].next()).value).to.deep.include({ method: 'notifications/resources/updated', params: follow })
    await Promise.all([hers.end(), his.end()])
    expect(await Array.fromAsync(streams[1])).to.deep.equal([])
  })
})
