import { createRequire } from 'node:module'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Answer, createClient } from '../support/client.ts'
import type { SentEvent } from '../support/events.ts'
import { inNewHome, type Service, startService } from '../support/service.ts'
import { startTwo } from '../support/two-workers.ts'
import { until } from '../support/wait.ts'

const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
const MESSAGE = '/tool everything__trigger-elicitation-request {}'

/** Each request over a connection of its own, so that both workers have their turns. */
const fresh = ({ url }: Service) => createClient(url, { keepAlive: false })

async function withServer(run: (service: Service, home: string) => Promise<void>) {
  await inNewHome(async home => {
    const clients = [{ name: 'everything', command: process.execPath, args: [EVERYTHING] }]
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ mcp: { clients } }))
    await writeFile(
      join(home, 'profiles.yaml'),
      'profiles: { default: { tools: ["everything__trigger-elicitation-request"] } }\n'
    )
    await using service = await startTwo({ home })
    await until(
      () => fresh(service).get('/api/v1/tools'),
      ({ text }) => text.includes('trigger-elicitation-request')
    )
    await run(service, home)
  })
}

const begin = (service: Service, body: object) =>
  fresh(service).stream({ method: 'POST', path: '/api/v1/chat/stream', body: { message: MESSAGE, interactive: true, ...body } })

const answer = (service: Service, events: readonly SentEvent[], said: object): Promise<Answer> =>
  fresh(service).post('/api/v1/chat/answer', {
    request_id: events[0]!.data.request_id,
    call_id: events.at(-1)!.data.call_id,
    ...said,
  })

const resultIn = (events: readonly SentEvent[]) => events.find(({ event }) => event === 'tool_result')!.data
const resultText = (events: readonly SentEvent[]) => JSON.stringify(resultIn(events).result)

describe('a form that a tool server asks a person to fill in', () => {
  it('is shown with its schema, checked and answered at any worker, and the tool goes on with its content', () =>
    withServer(async service => {
      const open = await begin(service, { forms: true })
      const events = await open.until('ask')
      const { question, form } = events.at(-1)!.data as { question: string; form: { schema: { properties: object } } }
      expect(question).to.match(/^The tool server "everything" asks: /)
      expect(form.schema.properties).to.include.keys('name', 'integer', 'email')
      for (const content of [{ integer: 1_000 }, { integer: 'many' }, { untitledSingleSelectEnum: 'Nobody' }])
        for (const _ of [1, 2, 3]) {
          const refused = await answer(service, events, { allow: true, content })
          expect(refused.status, JSON.stringify(content)).to.equal(400)
          expect(refused.text).to.contain(Object.keys(content)[0])
        }
      expect((await answer(service, events, { allow: true, content: [] })).status).to.equal(400)
      const said = await answer(service, events, { allow: true, content: { name: 'Ada', integer: 7 } })
      expect([said.status, said.body]).to.deep.equal([200, { success: true }])
      const all = (await open.rest()).events
      expect(resultIn(all)).to.include({ success: true })
      expect(resultText(all)).to.contain('Ada').and.contain('7')
      expect((await answer(service, events, { allow: true, content: { name: 'Eve' } })).status).to.equal(404)
    }))

  it('is offered again after kill -9 of the server; if the tool server cannot go on, the caller gets the reason', () =>
    withServer(async (service, home) => {
      const open = await begin(service, { forms: true })
      const events = await open.until('ask')
      await service.kill()
      await using next = await startService({ home })
      type Chats = { chats: { interrupted: boolean; form: unknown; turn_id: string }[] }
      const [question] = await until(
        async () => ((await fresh(next).get('/api/v1/workflows/questions')).body as Chats).chats,
        ([one]) => one?.interrupted === true
      )
      expect(question!.form).to.deep.equal(events.at(-1)!.data.form)
      await until(
        () => fresh(next).get('/api/v1/tools'),
        ({ text }) => text.includes('trigger-elicitation-request')
      )
      expect((await answer(next, events, { allow: true, content: { integer: 'many' } })).status).to.equal(400)
      expect((await answer(next, events, { allow: true, content: { name: 'Ada', integer: 7 } })).status).to.equal(200)
      const rest = await fresh(next).send({
        method: 'GET',
        path: `/api/v1/chat/stream/${question!.turn_id}`,
        headers: { 'last-event-id': '0' },
      })
      expect(rest.events.slice(0, events.length)).to.deep.equal(events)
      expect(resultIn(rest.events)).to.include({ success: false })
      expect(resultIn(rest.events).error).to.match(/its question is no longer open/)
      expect(rest.events.at(-1)!.data).to.include({ type: 'end', status: 'completed' })
    }))

  it('is declined where the person does not want to answer, and not shown to a client without forms', () =>
    withServer(async service => {
      const open = await begin(service, { forms: true })
      const events = await open.until('ask')
      expect((await answer(service, events, { allow: false })).status).to.equal(200)
      expect(resultText((await open.rest()).events)).to.match(/declin/i)
      const plain = await (await begin(service, {})).rest()
      expect(plain.events.map(({ event }) => event)).to.not.include('ask')
      expect(resultIn(plain.events).success).to.be.a('boolean')
    }))
})
