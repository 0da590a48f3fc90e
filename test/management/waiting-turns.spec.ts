import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type Answer, createClient, type OpenStream, type Request } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import type { SentEvent } from '../support/events.ts'
import { RUNS } from '../support/gates.ts'
import { inNewHome, type Service, startService } from '../support/service.ts'
import { clientTo, startTwo, workersOf } from '../support/two-workers.ts'
import { until } from '../support/wait.ts'

const GATES = fileURLToPath(new URL('../support/gates.ts', import.meta.url))
const PATH = '/api/v1/chat/stream'
const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }

type Headers = Record<string, string>

interface Question {
  readonly request_id: string
  readonly call_id: string
  readonly conversation_id: string
  readonly turn_id: string
  readonly interrupted: boolean
  readonly arguments: { readonly n?: number }
  readonly form: { readonly schema: { readonly required: readonly string[] } } | null
  readonly tool: string
  readonly since: string
  readonly until: string
}

interface Waiting {
  readonly events: readonly SentEvent[]
  readonly stream: OpenStream
  readonly pid: number
  readonly turn: string
  readonly conversation: string
}

/** Each request over a connection of its own. One that a killed worker had is sent again. */
const fresh = ({ url }: Service) => {
  const { send } = createClient(url, { keepAlive: false })
  const sure = async (request: Request): Promise<Answer> => {
    for (;;)
      try {
        return await send(request)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
      }
  }
  return {
    send: sure,
    get: (path: string) => sure({ method: 'GET', path }),
    post: (path: string, body: unknown) => sure({ method: 'POST', path, body }),
  }
}

const configured = (home: string, chat: object = {}) =>
  writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [GATES], chat }))

/** Starts a turn and reads up to so many questions. */
async function wait(service: Service, body: object, questions = 1, headers: Headers = {}): Promise<Waiting> {
  const client = createClient(service.url)
  const pid = Number((await client.send({ method: 'GET', path: '/pid', headers })).text)
  const stream = await client.stream({ method: 'POST', path: PATH, body: { interactive: true, ...body }, headers })
  const events: SentEvent[] = []
  while (events.filter(({ event }) => event === 'ask').length < questions) {
    const event = await stream.next()
    if (!event) throw new Error(`the stream ended: ${JSON.stringify(events)}`)
    events.push(event)
  }
  const { turn_id: turn, conversation_id: conversation } = events[0]!.data as { turn_id: string; conversation_id: string }
  return { events, stream, pid, turn, conversation }
}

const questionsOf = async (service: Service, headers: Headers = {}) => {
  const { body, status, text } = await fresh(service).send({ method: 'GET', path: '/api/v1/workflows/questions', headers })
  expect(status, text).to.equal(200)
  return (body as { chats: Question[] }).chats
}

/** The questions, once each of them is offered again. */
const offered = (service: Service, count = 1, headers: Headers = {}) =>
  until(
    () => questionsOf(service, headers),
    found => found.filter(({ interrupted }) => interrupted).length === count
  )

const answer = (service: Service, { request_id, call_id }: Question, said: object = { allow: true }, headers: Headers = {}) =>
  fresh(service).send({ method: 'POST', path: '/api/v1/chat/answer', body: { request_id, call_id, ...said }, headers })

const resume = (service: Service, turn: string, after = 0, headers: Headers = {}) =>
  fresh(service).send({ method: 'GET', path: `${PATH}/${turn}`, headers: { 'last-event-id': String(after), ...headers } })

const runsIn = async (home: string) => (await readFile(join(home, RUNS), 'utf8').catch(() => '')).split('\n').filter(Boolean)
const textOf = (events: readonly SentEvent[]) =>
  events
    .filter(({ event }) => event === 'token')
    .map(({ data }) => data.content)
    .join('')
const resultsIn = (events: readonly SentEvent[]) =>
  Object.fromEntries(events.filter(({ event }) => event === 'tool_result').map(({ data }) => [String(data.tool), data]))
const messagesOf = async (service: Service, conversation: string, headers: Headers = {}) => {
  const found = await fresh(service).send({ method: 'GET', path: `/api/v1/conversations/${conversation}`, headers })
  return (found.body as { messages?: { role: string; content: string; status?: string }[] }).messages ?? []
}
const outcomeOf = ({ status, body }: Answer) => [status, (body as { error_code?: string }).error_code]

/** Reads the continued turn from its start, and checks what each continued turn has. */
async function finished(service: Service, { turn, events, conversation }: Waiting): Promise<readonly SentEvent[]> {
  const all = await resume(service, turn)
  expect(all.status, all.text).to.equal(200)
  expect(all.events.map(({ id }) => Number(id))).to.deep.equal(all.events.map((_, at) => at + 1))
  expect(all.events.slice(0, events.length)).to.deep.equal(events)
  const end = all.events.at(-1)!.data
  expect(end).to.include({ type: 'end', status: 'completed' })
  expect((await resume(service, turn, events.length)).events).to.deep.equal(all.events.slice(events.length))
  const stored = (await messagesOf(service, conversation)).at(-1)!
  expect(stored).to.include({ role: 'assistant', content: textOf(all.events) })
  expect(stored).to.not.have.property('status')
  return all.events
}

describe('a turn that waits for a person', function () {
  this.timeout(180_000)

  it('is offered again after kill -9 of one of two workers, and goes on at the worker that gets the answer', () =>
    inNewHome(async home => {
      await configured(home)
      await using service = await startTwo({ home })
      const first = await fresh(service).post('/api/v1/chat', { message: 'hello', tools: [] })
      const { conversation_id } = first.body as { conversation_id: string }
      for (const body of [{}, { conversation_id }]) {
        const runs = (await runsIn(home)).length
        const waiting = await wait(service, { message: '/tool gate {"n":1}\n/tool idle {}', ...body })
        const [live] = await questionsOf(service)
        expect(live).to.include({ interrupted: false, turn_id: waiting.turn, tool: 'gate' })
        await until(
          () => runsIn(home),
          lines => lines.length === runs + 1
        )
        process.kill(waiting.pid, 'SIGKILL')
        const [question] = await offered(service)
        const { since, until: end } = question!
        expect(question).to.deep.include({ ...live!, interrupted: true, since, until: end })
        expect((await resume(service, waiting.turn)).status).to.equal(404)
        const said = await answer(service, question!)
        expect([said.status, said.text]).to.deep.equal([200, '{"success":true}'])
        const events = await finished(service, waiting)
        expect(resultsIn(events).gate).to.include({ success: true, result: 'gate 1 is open' })
        expect(resultsIn(events).idle).to.include({ success: false })
        expect(resultsIn(events).idle!.error).to.match(/^It is unknown whether this call ran/)
        expect(outcomeOf(await answer(service, question!))).to.deep.equal([404, 'INVALID_VALUE'])
        expect(await questionsOf(service)).to.deep.equal([])
        expect((await runsIn(home)).slice(runs).toSorted()).to.deep.equal(['gate 1', 'idle'])
      }
      expect((await messagesOf(service, conversation_id)).map(({ role }) => role)).to.deep.equal([
        'user',
        'assistant',
        'user',
        'assistant',
      ])
    }))

  it('is offered again after kill -9 of a single worker, with all questions of its step', () =>
    inNewHome(async home => {
      await configured(home)
      await using service = await startService({ home })
      const waiting = await wait(service, { message: '/tool gate {"n":1}\n/tool gate {"n":2}\n/tool gate {"n":3}' }, 3)
      const live = await questionsOf(service)
      expect((await answer(service, live[0]!, { allow: false, reason: 'not one' })).status).to.equal(200)
      process.kill(waiting.pid, 'SIGKILL')
      const questions = await offered(service, 2)
      expect(questions.map(question => question.arguments.n)).to.deep.equal([2, 3])
      expect((await answer(service, questions[1]!, { allow: false, reason: 'not three' })).status).to.equal(200)
      const [other] = await until(
        () => questionsOf(service),
        ([one]) => one?.interrupted === false
      )
      expect(other).to.deep.include({ arguments: { n: 2 }, turn_id: waiting.turn })
      expect((await answer(service, other!)).status).to.equal(200)
      const events = await finished(service, waiting)
      const results = events.filter(({ event }) => event === 'tool_result').map(({ data }) => data.error ?? data.result)
      expect(results[0]).to.match(/^It is unknown whether this call ran/)
      expect(results.slice(1)).to.deep.equal(['gate 2 is open', 'Not allowed: not three'])
      expect(events.filter(({ event }) => event === 'ask')).to.have.length(3)
      expect(await runsIn(home)).to.deep.equal(['gate 2'])
    }))

  it('is offered again after kill -9 of the whole server, with the settings of its request', () =>
    inNewHome(async home => {
      await configured(home)
      await writeFile(join(home, 'profiles.yaml'), 'profiles: { default: {}, other: { system_prompt: "Be brief." } }\n')
      const killed = await startTwo({ home })
      const asked = { message: '/tool gate {"n":7}', profile: 'other', mode: 'review', tool_budget: 1, token_budget: 100_000 }
      const waiting = await wait(killed, asked)
      await killed.kill()
      await using service = await startTwo({ home })
      const [question] = await offered(service)
      expect(question).to.include({ turn_id: waiting.turn, conversation_id: waiting.conversation })
      expect((await answer(service, question!)).status).to.equal(200)
      const events = await finished(service, waiting)
      expect(resultsIn(events).gate).to.include({ success: true })
      const detail = await fresh(service).get(`/api/v1/conversations/${waiting.conversation}?detail=full`)
      const roles = (detail.body as { messages: { role: string }[] }).messages.map(({ role }) => role)
      expect(roles).to.deep.equal(['user', 'assistant', 'tool', 'assistant'])
    }))

  it('is killed again while it waits again, and is offered again', () =>
    inNewHome(async home => {
      await configured(home)
      await using service = await startTwo({ home })
      let waiting = await wait(service, { message: '/tool gate {"n":1}\n/tool gate {"n":2}' }, 2)
      const start = waiting
      process.kill(waiting.pid, 'SIGKILL')
      const questions = await offered(service, 2)
      const client = await clientTo(service.url, () => true)
      const pid = Number((await client.get('/pid')).text)
      const { request_id, call_id } = questions[0]!
      expect((await client.post('/api/v1/chat/answer', { request_id, call_id, allow: true })).status).to.equal(200)
      await until(
        () => questionsOf(service),
        ([one]) => one?.interrupted === false
      )
      waiting = { ...waiting, pid }
      await until(
        () => runsIn(home),
        lines => lines.length === 1
      )
      process.kill(pid, 'SIGKILL')
      const [left] = await offered(service)
      expect(left!.arguments).to.deep.equal({ n: 2 })
      expect((await answer(service, left!)).status).to.equal(200)
      const results = (await finished(service, start)).filter(({ event }) => event === 'tool_result')
      expect(results[0]!.data.error).to.match(/^It is unknown whether this call ran/)
      expect(await runsIn(home)).to.deep.equal(['gate 1', 'gate 2'])
    }))

  it('takes exactly one of many answers that arrive at two workers at once', () =>
    inNewHome(async home => {
      await configured(home)
      await using service = await startTwo({ home })
      const waiting = await wait(service, { message: '/tool gate {"n":1}' })
      process.kill(waiting.pid, 'SIGKILL')
      const [question] = await offered(service)
      await until(
        () => workersOf(home),
        workers => workers.length === 2
      )
      const answers = await Promise.all(Array.from({ length: 12 }, () => answer(service, question!)))
      expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).to.deep.equal([
        200,
        ...Array.from({ length: 11 }, () => 404),
      ])
      await finished(service, waiting)
      expect(await runsIn(home)).to.deep.equal(['gate 1'])
    }))

  it('cannot be answered when it has expired, or its conversation was deleted; a cancelled one is stored as such', () =>
    inNewHome(async home => {
      await configured(home, { ask_timeout_ms: 10_000, interrupted_keep_s: 15 })
      await using service = await startTwo({ home })
      const { conversation_id } = (await fresh(service).post('/api/v1/chat', { message: 'hello', tools: [] })).body as {
        conversation_id: string
      }
      const interrupted = async (body: object) => {
        const waiting = await wait(service, { message: '/tool gate {}', ...body })
        process.kill(waiting.pid, 'SIGKILL')
        const [question] = await offered(service)
        return { ...waiting, question: question! }
      }
      const expired = await interrupted({})
      await until(
        () => questionsOf(service),
        found => found.length === 0
      )
      expect(Date.parse(expired.question.until)).to.be.at.most(Date.now())
      expect(outcomeOf(await answer(service, expired.question))).to.deep.equal([404, 'INVALID_VALUE'])

      const deleted = await interrupted({ conversation_id })
      const deletion = { method: 'DELETE', path: `/api/v1/conversations/${conversation_id}` }
      expect((await fresh(service).send(deletion)).status).to.be.below(300)
      expect(await questionsOf(service)).to.deep.equal([])
      expect(outcomeOf(await answer(service, deleted.question))).to.deep.equal([404, 'INVALID_VALUE'])

      const cancelled = await interrupted({})
      const cancel = () => fresh(service).post(`${PATH}/${cancelled.turn}/cancel`, undefined)
      expect((await cancel()).status).to.equal(200)
      const stored = await until(
        () => messagesOf(service, cancelled.conversation),
        messages => messages.length > 1
      )
      expect(stored.at(-1)).to.include({ role: 'assistant', status: 'cancelled' })
      expect(outcomeOf(await answer(service, cancelled.question))).to.deep.equal([404, 'INVALID_VALUE'])
      expect(await questionsOf(service)).to.deep.equal([])
      expect(await runsIn(home)).to.deep.equal([])
    }))

  it('is not offered again when its new conversation was deleted before, or when chat.interrupted_keep_s is 0', () =>
    inNewHome(async home => {
      await configured(home)
      const service = await startService({ home })
      const waiting = await wait(service, { message: '/tool gate {}' })
      const deletion = { method: 'DELETE', path: `/api/v1/conversations/${waiting.conversation}` }
      expect((await fresh(service).send(deletion)).status).to.be.below(300)
      await service.kill()
      await configured(home, { interrupted_keep_s: 0 })
      await using next = await startService({ home })
      const other = await wait(next, { message: '/tool gate {}' })
      const [live] = await questionsOf(next)
      process.kill(other.pid, 'SIGKILL')
      await next.seen(/"event":"worker_ready"/)
      expect(await questionsOf(next)).to.deep.equal([])
      expect(outcomeOf(await answer(next, live!))).to.deep.equal([404, 'INVALID_VALUE'])
      await next.stop()
      await configured(home)
      await using last = await startService({ home })
      // longer than the leases of a killed server last
      await new Promise(resolve => setTimeout(resolve, 11_000))
      expect(await questionsOf(last)).to.deep.equal([])
    }))

  it('is offered again with the form of a tool as its only question, whose answer is checked before the turn goes on', () =>
    inNewHome(async home => {
      await configured(home)
      await using service = await startTwo({ home })
      const waiting = await wait(service, { message: '/tool fill {}', forms: true })
      const [live] = await questionsOf(service)
      expect(live!.form!.schema.required).to.deep.equal(['name'])
      process.kill(waiting.pid, 'SIGKILL')
      const [question] = await offered(service)
      const { since, until: end } = question!
      expect(question).to.deep.include({ ...live!, interrupted: true, since, until: end })
      for (const content of [{}, { name: '' }, { name: 5 }]) {
        const refused = await answer(service, question!, { allow: true, content })
        expect(outcomeOf(refused), refused.text).to.deep.equal([400, 'INVALID_VALUE'])
        expect((await offered(service))[0]).to.deep.include({ call_id: question!.call_id, interrupted: true })
      }
      expect((await answer(service, question!, { allow: true, content: { name: 'Ada' } })).status).to.equal(200)
      const [next] = await until(
        () => questionsOf(service),
        ([one]) => one?.interrupted === false
      )
      expect(next!.form!.schema.required).to.deep.equal(['city'])
      expect((await answer(service, next!, { allow: false })).status).to.equal(200)
      const events = await finished(service, waiting)
      expect(resultsIn(events).fill).to.include({ success: true, result: 'filled' })
      const accepted = '"a":{"action":"accept","content":{"name":"Ada"}}'
      expect(await runsIn(home)).to.deep.equal(['fill begins', `fill first {${accepted},"b":{"action":"decline"}}`])
    }))

  it('keeps the answers to earlier forms over kill -9 of the whole server, and the permission of the tool', () =>
    inNewHome(async home => {
      await configured(home)
      const killed = await startTwo({ home })
      const waiting = await wait(killed, { message: '/tool guarded {"n":2}', forms: true })
      const events = [...waiting.events]
      const shown = async () => events.push((await waiting.stream.next())!)
      const said = async (body: object) => {
        const [question] = await questionsOf(killed)
        expect((await answer(killed, question!, body)).status).to.equal(200)
        await shown()
      }
      await said({ allow: true })
      await said({ allow: true, content: { name: 'Ada' } })
      await said({ allow: true, content: { city: 'London' } })
      expect(events.filter(({ event }) => event === 'ask')).to.have.length(4)
      await killed.kill()
      await using service = await startTwo({ home })
      const [question] = await offered(service)
      expect(question!.form!.schema.required).to.deep.equal(['street'])
      expect((await answer(service, question!, { allow: true, content: { street: 'Fleet' } })).status).to.equal(200)
      const all = await finished(service, { ...waiting, events })
      expect(resultsIn(all).guarded).to.include({ success: true, result: 'filled' })
      const runs = await runsIn(home)
      expect(runs).to.have.length(3)
      expect(runs[2]).to.equal('fill second {"c":{"action":"accept","content":{"street":"Fleet"}}}')
    }))

  it('asks again for the forms and the permissions of one step', () =>
    inNewHome(async home => {
      await configured(home)
      await using service = await startTwo({ home })
      const waiting = await wait(service, { message: '/tool fill {}\n/tool gate {"n":1}', forms: true }, 2)
      expect(await questionsOf(service)).to.have.length(2)
      process.kill(waiting.pid, 'SIGKILL')
      const questions = await offered(service, 2)
      const gate = questions.find(({ tool }) => tool === 'gate')!
      expect((await answer(service, gate)).status).to.equal(200)
      for (const content of [{ name: 'Ada' }, { city: 'London' }]) {
        const open = await until(
          () => questionsOf(service),
          ([one]) => one?.interrupted === false && one.form!.schema.required[0] === Object.keys(content)[0]
        )
        expect((await answer(service, open[0]!, { allow: true, content })).status).to.equal(200)
      }
      const events = await finished(service, waiting)
      expect(resultsIn(events).gate).to.include({ success: true })
      expect(resultsIn(events).fill).to.include({ success: true })
      expect((await runsIn(home)).toSorted()).to.deep.equal([
        'fill begins',
        'fill first {"a":{"action":"accept","content":{"name":"Ada"}},"b":{"action":"accept","content":{"city":"London"}}}',
        'gate 1',
      ])
    }))

  it('belongs to its principal: others see nothing, and cannot answer, read or cancel it', () =>
    inNewHome(async home => {
      await configured(home)
      const killed = await startTwo({ home, env: AUTH })
      const create = async (name: string, scope: string): Promise<Headers> => ({
        authorization: `Bearer ${(await runSvc(['tokens', 'create', '--name', name, '--scope', scope], { home })).out.trim()}`,
      })
      const [anna, ben, admin, reader] = [
        await create('anna', 'chat,read'),
        await create('ben', 'chat,read'),
        await create('root', 'chat,read,admin'),
        await create('reader', 'read'),
      ]
      const waiting = await wait(killed, { message: '/tool gate {"n":1}' }, 1, anna)
      await killed.kill()
      await using service = await startTwo({ home, env: AUTH })
      const [question] = await offered(service, 1, anna)
      expect(await questionsOf(service, ben)).to.deep.equal([])
      expect((await questionsOf(service, admin))[0]).to.include({ interrupted: true, answerable: false })
      for (const who of [ben, admin]) {
        const [other, none] = [
          await answer(service, question!, { allow: true }, who),
          await answer(service, { ...question!, call_id: 'nothing' }, { allow: true }, who),
        ]
        expect(outcomeOf(other)).to.deep.equal([404, 'INVALID_VALUE'])
        const plain = ({ text }: Answer, id: string) => text.replaceAll(id, 'C').replace(/"request_id":"[^"]*"/, '')
        expect(plain(other, question!.call_id)).to.equal(plain(none, 'nothing'))
        const cancel = { method: 'POST', path: `${PATH}/${waiting.turn}/cancel`, headers: who }
        expect((await fresh(service).send(cancel)).status).to.equal(404)
      }
      expect((await answer(service, question!, { allow: true }, reader)).status).to.equal(403)
      expect((await answer(service, question!, { allow: 'yes' }, anna)).status).to.equal(400)
      expect(await runsIn(home)).to.deep.equal([])
      expect((await answer(service, question!, { allow: true }, anna)).status).to.equal(200)
      expect((await resume(service, waiting.turn, 0, ben)).status).to.equal(404)
      const own = await resume(service, waiting.turn, 0, anna)
      expect(own.events.at(-1)!.data).to.include({ status: 'completed' })
      expect((await messagesOf(service, waiting.conversation, anna)).at(-1)!.content).to.equal(textOf(own.events))
      expect(await messagesOf(service, waiting.conversation, ben)).to.deep.equal([])
    }))
})
