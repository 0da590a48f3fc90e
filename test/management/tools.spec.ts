import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { eventsOf, type Managed, type ManagedService, outcomeOf, startManaged } from '../support/management.ts'

const PLUGIN = fileURLToPath(new URL('../support/call-tools.ts', import.meta.url))
const call = (name: string) => `/api/v1/tools/${name}/call`

describe('tools over HTTP', function () {
  this.timeout(120_000)
  let home: string
  let managed: ManagedService
  let [all, reader, other, looker]: Managed[] = []

  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'svc-home-'))
    managed = await startManaged(home, { config: { plugins: [PLUGIN], chat: { ask_timeout_ms: 20_000 } }, workers: 2 })
    all = await managed.as('all', 'tools,read,admin')
    reader = await managed.as('reader', 'tools')
    other = await managed.as('other', 'tools')
    looker = await managed.as('looker', 'read')
  })
  after(async () => {
    await managed?.[Symbol.asyncDispose]()
    await rm(home, { recursive: true, force: true })
  })

  it('show the whole schema of a tool, the same from each worker', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => looker!.get('/api/v1/tools/steps')))
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1)
    expect(answers[0]!.body).to.deep.include({
      name: 'steps',
      title: 'Steps',
      category: 'text',
      effects: ['read'],
      asks: false,
      callable: true,
      timeout_ms: null,
      modes: null,
      output_schema: { type: 'object', properties: { steps: { type: 'integer' } } },
    })
    expect(answers[0]!.body).to.have.nested.property('input_schema.properties.deep.items.properties.kind.enum[1]', 'b')
    expect(answers[0]!.body).to.have.nested.property('parameters.deep.type', 'array')
    expect(answers[0]!.body).to.have.property('plugin').that.includes('call-tools')
    expect((await looker!.get('/api/v1/tools/turns_only')).body).to.deep.include({ callable: false, modes: ['build'] })
  })

  it('stream a call with its progress and its result', async () => {
    const answer = await reader!.send('POST', call('steps'), { arguments: { pause_ms: 5 } })
    expect(answer.status, answer.text).to.equal(200)
    const events = eventsOf(answer)
    expect(events.map(({ type }) => type)).to.deep.equal(['start', 'progress', 'progress', 'progress', 'result', 'end'])
    expect(events[2]).to.deep.equal({ type: 'progress', progress: 2, total: 3, message: 'step 2' })
    expect(events[4]).to.deep.include({ success: true, structured_content: { steps: 3 } })
    expect(events[5]).to.include({ status: 'completed', tool: 'steps' })
    expect(eventsOf(await reader!.send('POST', call('fails'), {})).at(-2)).to.deep.include({ success: false })
    expect(eventsOf(await reader!.send('POST', call('fails'), {})).at(-1)).to.include({ status: 'failed' })
  })

  it('ask for approval and for input, and take the answer at any worker, of the caller only', async () => {
    const stream = await reader!.stream('POST', call('consent'), { interactive: true })
    const asked = (await stream.until('ask')).at(-1)!.data as { call_id: string; question_id: string }
    const begun = stream.headers['x-request-id']
    const answer = { request_id: begun as string, question_id: asked.question_id, allow: true }
    expect(outcomeOf(await other!.send('POST', '/api/v1/tools/consent/answer', answer))).to.include({ status: 404 })
    expect(outcomeOf(await looker!.send('POST', '/api/v1/tools/consent/answer', answer))).to.include({ status: 403 })
    const wrong = { ...answer, question_id: asked.call_id }
    expect(outcomeOf(await reader!.send('POST', '/api/v1/tools/consent/answer', wrong))).to.include({ status: 404 })
    const taken = await reader!.send('POST', '/api/v1/tools/consent/answer', answer)
    expect(taken.status, taken.text).to.equal(200)
    const events = eventsOf(await stream.rest())
    expect(events.map(({ type }) => type)).to.deep.equal(['start', 'ask', 'result', 'end'])
    expect(outcomeOf(await reader!.send('POST', '/api/v1/tools/consent/answer', answer)), 'twice').to.include({ status: 404 })
  })

  const dialog = async (tool: string, reply: object, times = 1) => {
    const stream = await reader!.stream('POST', call(tool), { interactive: true })
    const requestId = ((await stream.until('start')).at(-1)!.data as { request_id: string }).request_id
    for (let time = 0; time < times; time++) {
      const asked = (await stream.until('ask')).at(-1)!.data as { question_id: string; requests: object }
      expect(asked.requests).to.be.an('object')
      const body = { request_id: requestId, question_id: asked.question_id, ...reply }
      const answer = await reader!.send('POST', `/api/v1/tools/${tool}/answer`, body)
      expect(answer.status, answer.text).to.equal(200)
    }
    return eventsOf(await stream.rest())
  }

  it('pass the answers of a form to the tool', async () => {
    const accepted = await dialog('form', { allow: true, answers: { who: { action: 'accept', content: { name: 'Ann' } } } })
    expect(accepted.at(-2)).to.deep.include({ content: [{ type: 'text', text: 'hello Ann' }] })
    const declined = await dialog('form', { allow: false })
    expect(declined.at(-2)).to.deep.include({ content: [{ type: 'text', text: 'the user said decline' }] })
    const stopped = await dialog('insatiable', { allow: true, answers: {} }, 11)
    expect(stopped.at(-2)).to.deep.include({ type: 'error', error_code: 'TOOL_EXECUTION_FAILED' })
    const alone = eventsOf(await reader!.send('POST', call('form'), {}))
    expect(alone.at(-2)).to.deep.include({ content: [{ type: 'text', text: 'nobody can answer' }] })
  })

  it('report a denial, a time limit and an error of the tool, without its details', async () => {
    const consent = await dialogDenied()
    expect(consent.at(-2)).to.deep.include({ type: 'error', error_code: 'FORBIDDEN' })
    const late = eventsOf(await reader!.send('POST', call('hangs'), {}))
    expect(late.at(-2)).to.deep.include({ type: 'error', error_code: 'TIMEOUT' })
    expect(late.at(-1)).to.include({ type: 'end', status: 'failed' })
    const shorter = eventsOf(await reader!.send('POST', call('hangs'), { timeout: 0.05 }))
    expect(shorter.at(-2)).to.have.nested.property('details.timeout_ms', 50)
    const thrown = await reader!.send('POST', call('throws'), {})
    expect(eventsOf(thrown).at(-2)).to.deep.include({ error_code: 'TOOL_EXECUTION_FAILED' })
    expect(thrown.text).to.include('broken inside').and.not.include('/home/secret')
  })

  async function dialogDenied() {
    const stream = await reader!.stream('POST', call('consent'), { interactive: true })
    const requestId = ((await stream.until('start')).at(-1)!.data as { request_id: string }).request_id
    const { question_id } = (await stream.until('ask')).at(-1)!.data as { question_id: string }
    await reader!.send('POST', '/api/v1/tools/consent/answer', { request_id: requestId, question_id, allow: false })
    return eventsOf(await stream.rest())
  }

  it('hold modes, the same at each worker', async () => {
    expect((await all!.send('POST', '/api/v1/mode/switch', { mode: 'plan' })).status).to.equal(200)
    for (let time = 0; time < 10; time++) {
      expect(outcomeOf(await reader!.send('POST', call('writes'), {}))).to.include({ status: 400, code: 'INVALID_VALUE' })
      expect((await looker!.get('/api/v1/tools/writes')).body).to.include({ callable: false })
    }
    expect((await all!.send('POST', '/api/v1/mode/switch', { mode: 'build' })).status).to.equal(200)
    expect(eventsOf(await reader!.send('POST', call('writes'), {})).at(-1)).to.include({ status: 'completed' })
  })

  it('reject bad input', async () => {
    const bad: readonly (readonly [string, unknown, number, string?])[] = [
      ['steps', { arguments: { pause_ms: 'x' } }, 400, 'arguments.pause_ms'],
      ['steps', { arguments: { deep: [{ kind: 'c' }] } }, 400, 'arguments.deep[0].kind'],
      ['steps', { arguments: [] }, 400, 'arguments'],
      ['steps', { args: {} }, 400, 'args'],
      ['steps', { timeout: 0 }, 400, 'timeout'],
      ['steps', { timeout: 99_999 }, 400, 'timeout'],
      ['steps', { interactive: 'yes' }, 400, 'interactive'],
      ['none', {}, 404],
      ['__proto__', {}, 404],
      ['%00', {}, 404],
      ['turns_only', {}, 400, 'name'],
      ['consent', {}, 403],
    ]
    for (const [name, body, status, field] of bad) {
      const outcome = outcomeOf(await reader!.send('POST', call(name), body))
      expect(outcome.status, `${name} ${JSON.stringify(body)}`).to.equal(status)
      if (field !== undefined) expect(outcome.field, JSON.stringify(body)).to.equal(field)
    }
    expect(outcomeOf(await looker!.send('POST', call('steps'), {}))).to.include({ status: 403, code: 'FORBIDDEN' })
    expect(outcomeOf(await reader!.get('/api/v1/tools/steps'))).to.include({ status: 403 })
    expect(outcomeOf(await looker!.get('/api/v1/tools/none'))).to.include({ status: 404, code: 'TOOL_NOT_FOUND' })
    expect(outcomeOf(await looker!.get('/api/v1/tools/steps?schema=full'))).to.include({ status: 400 })
    for (const body of [
      {},
      { request_id: 1, question_id: 'q', allow: true },
      { request_id: 'r', question_id: 'q', allow: 'yes' },
    ])
      expect(outcomeOf(await reader!.send('POST', '/api/v1/tools/steps/answer', body))).to.include({ status: 400 })
  })
})
