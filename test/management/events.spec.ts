import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as contracts from '@svc/core/contracts'
import { expect } from 'chai'
import { createClient, type OpenStream } from '../support/client.ts'
import type { SentEvent } from '../support/events.ts'
import { inNewHome, startService } from '../support/service.ts'
import { startTwo } from '../support/two-workers.ts'

const FLOOD = fileURLToPath(new URL('../support/event-flood.ts', import.meta.url))
const configure = (home: string) => writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [FLOOD] }))

const EVENTS = '/api/v1/events'
const fresh = (url: string) => createClient(url, { keepAlive: false })
const openEvents = (url: string, query = '', headers: Record<string, string> = {}) =>
  fresh(url).stream({ method: 'GET', path: `${EVENTS}${query}`, headers })
const say = async (url: string, message: string, headers: Record<string, string> = {}) => {
  const answer = await fresh(url).send({ method: 'POST', path: '/api/v1/chat', headers, body: { message } })
  expect(answer.status, answer.text).to.equal(200)
  return answer
}

interface EventRecord {
  id: string
  source: string
  type: string
  principal: string
  requestid: string
  data: { [name: string]: unknown }
}
const recordOf = ({ data }: SentEvent) => data as unknown as EventRecord

/** The next event with data that is not about losses. */
async function nextOf(stream: OpenStream): Promise<SentEvent> {
  for (;;) {
    const event = await stream.next()
    if (!event) throw new Error('the stream ended')
    if (!event.comment && event.event?.startsWith('svc.') && event.event !== 'svc.events_lost') return event
  }
}

/** Opens a stream, and chats until the events of both workers reach it. */
async function openWarm(url: string, query: string): Promise<OpenStream> {
  const stream = await openEvents(url, query)
  const sources = new Set<string>()
  const reading = (async () => {
    while (sources.size < 2) sources.add(recordOf(await nextOf(stream)).source)
  })()
  let isWarm = false
  reading.finally(() => (isWarm = true)).catch(() => {})
  while (!isWarm) {
    await say(url, 'warm')
    await sleep(20)
  }
  await reading
  return stream
}

/** The events of `count` turns, which `requests` name. */
async function takeOf(stream: OpenStream, requests: readonly string[]): Promise<string[]> {
  const seen: string[] = []
  while (seen.length < requests.length) {
    const { requestid } = recordOf(await nextOf(stream))
    if (requests.includes(requestid)) seen.push(requestid)
  }
  return seen
}

const QUERY = '?types=turn_completed'

describe('GET /api/v1/events', () => {
  it('has each type that svc publishes in the reference', async () => {
    const page = await readFile('docs/reference/events.md', 'utf8')
    const isTopic = (value: unknown): value is { category: string; type: string } =>
      typeof value === 'object' && value !== null && Object.keys(value).join() === 'category,type'
    const topics = Object.values(contracts).filter(isTopic)
    expect(topics.length).to.be.above(25)
    for (const { category, type } of topics) {
      expect(page, type).to.match(new RegExp(`\\b${type}\\b`))
      expect(page, category).to.include(`\`${category}\``)
    }
  })

  it('streams the events of both workers to a client of either, and a client that comes back misses none', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startTwo({ home })
      const { url } = service
      const streams = [await openWarm(url, QUERY), await openWarm(url, QUERY)]
      const ids = Array.from({ length: 12 }, (_, at) => `turn-${at}`)
      for (const id of ids) await say(url, 'hello', { 'x-request-id': id })
      for (const stream of streams) expect((await takeOf(stream, ids)).toSorted()).to.deep.equal(ids.toSorted())
      // leaves, and reads on with any worker
      const reader = await openWarm(url, QUERY)
      await say(url, 'marked', { 'x-request-id': 'mark' })
      let mark = await nextOf(reader)
      while (recordOf(mark).requestid !== 'mark') mark = await nextOf(reader)
      await reader.leave()
      for (const id of ids) await say(url, 'again', { 'x-request-id': `${id}-again` })
      for (const _ of [1, 2, 3]) {
        const back = await openEvents(url, QUERY, { 'last-event-id': mark.id! })
        const again = ids.map(id => `${id}-again`)
        expect((await takeOf(back, again)).toSorted()).to.deep.equal(again.toSorted())
        await back.leave()
      }
      for (const stream of streams) await stream.leave()
    }))

  it('tells when a run asks a person, and when the answer has reached it', () =>
    inNewHome(async home => {
      await mkdir(join(home, 'workflows'))
      await writeFile(join(home, 'workflows/ask.yaml'), 'name: ask\nnodes:\n  may: { type: human, message: "May it?" }\n')
      await using service = await startService({ home })
      const { url } = service
      const stream = await openEvents(url, '?types=run_asked,run_answered')
      const send = async (path: string, body: object) =>
        (await fresh(url).send({ method: 'POST', path: `/api/v1/workflows/${path}`, body })).body as { workflow_id: string }
      const { workflow_id: run } = await send('run', { workflow: 'ask' })
      const asked = recordOf(await nextOf(stream))
      const about = { run, workflow: 'ask', step: 'may', node: 'may' }
      expect([asked.type, asked.data]).to.deep.equal(['svc.run_asked', about])
      await send(`${run}/answer`, { step: 'may', value: true })
      const answered = recordOf(await nextOf(stream))
      expect([answered.type, answered.data]).to.deep.equal(['svc.run_answered', about])
      await stream.leave()
    }))

  it('begins with its position, so that a client misses nothing if its connection breaks before the first event', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startTwo({ home })
      await (await openWarm(service.url, QUERY)).leave()
      const stream = await openEvents(service.url, QUERY)
      const position = await stream.next()
      expect(position!.lines).to.deep.equal(['id'])
      await stream.leave()
      const said: string[] = []
      for (let turn = 0; turn < 6; turn++) said.push(String((await say(service.url, 'missed')).headers['x-request-id']))
      const again = await openEvents(service.url, QUERY, { 'last-event-id': position!.id })
      expect((await again.next())!.id).to.equal(position!.id)
      expect((await takeOf(again, said)).sort()).to.deep.equal(said.sort())
      await again.leave()
    }))

  it('ends its streams at a reload with the time to wait, and goes on after the last event', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startTwo({ home })
      const { url } = service
      const stream = await openWarm(url, QUERY)
      await say(url, 'before', { 'x-request-id': 'before' })
      let last = await nextOf(stream)
      while (recordOf(last).requestid !== 'before') last = await nextOf(stream)
      const rest = stream.rest()
      process.kill(service.child.pid!, 'SIGHUP')
      const { text } = await rest
      expect(text).to.match(/\nretry: \d+\n\n$/)
      await say(url, 'after', { 'x-request-id': 'after' })
      const back = await openEvents(url, QUERY, { 'last-event-id': last.id! })
      let event = await nextOf(back)
      while (recordOf(event).requestid !== 'after') event = await nextOf(back)
      await back.leave()
    }))

  it('names what happens in CloudEvents without content, changes with their difference, and counts what a client has missed', () =>
    inNewHome(async home => {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ events: { keep: 20 } }))
      await using service = await startService({ home })
      const { url } = service
      const stream = await openEvents(url)
      await stream.next()
      const content = 'a sentence that no event may contain'
      const message = `/tool get_current_time {} ${content}`
      const headers = { 'x-request-id': 'the-turn', 'content-type': 'application/json' }
      const answer = await fresh(url).send({ method: 'POST', path: '/api/v1/chat', headers, body: { message } })
      expect(answer.status, answer.text).to.equal(200)
      await fresh(url).post('/api/v1/mode/switch', { mode: 'plan' })
      const records: EventRecord[] = []
      let last: string | undefined
      while (records.at(-1)?.type !== 'svc.config_changed') {
        const event = await nextOf(stream)
        last = event.id
        records.push(recordOf(event))
      }
      await stream.leave()
      const types = records.map(({ type }) => type)
      expect(types[0]).to.equal('svc.turn_started')
      expect(types).to.include.members(['svc.model_completed', 'svc.turn_completed'])
      expect(JSON.stringify(records)).to.not.include(content)
      const completed = records.find(({ type }) => type === 'svc.turn_completed')!
      expect(completed).to.deep.include({ specversion: '1.0', datacontenttype: 'application/json', principal: 'anonymous' })
      expect(completed)
        .to.have.property('subject')
        .that.matches(/^conversations\//)
      expect(completed.requestid).to.equal('the-turn')
      expect(completed.data).to.include.keys(['turn', 'conversation_id', 'provider', 'model', 'duration_ms', 'output_tokens'])
      const { data } = records.at(-1)!
      expect(data).to.deep.equal({ subject: 'selection', before: { mode: null }, after: { mode: 'plan' } })

      for (let at = 0; at < 30; at++) await say(url, 'more')
      const back = await openEvents(url, '?types=turn_completed', { 'last-event-id': last! })
      let lost: SentEvent | undefined
      while (lost?.event !== 'svc.events_lost') lost = await back.next()
      expect(lost.id ?? '').to.equal('')
      // each turn has at least three events, and 20 are kept
      expect((lost.data as unknown as { data: { count: number } }).data.count).to.be.at.least(70)
      await back.leave()
    }))

  it('shows callers their own events, and all to the scope admin', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startService({
        home,
        env: { SVC_API_KEY: 'the-key-of-this-test-0123456789', SVC_SERVER__AUTH__ENABLED: 'true' },
      })
      const { url } = service
      const admin = { 'x-api-key': 'the-key-of-this-test-0123456789' }
      expect((await fresh(url).get(EVENTS)).status).to.equal(401)
      const all = await openEvents(url, QUERY, admin)
      await say(url, 'hi', { ...admin, 'x-request-id': 'seen' })
      const { requestid, principal } = recordOf(await nextOf(all))
      expect(requestid).to.equal('seen')
      expect(principal).to.be.a('string').and.not.equal('anonymous')
      await all.leave()
    }))

  it('rejects positions of other servers and queries that it does not know', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startService({ home })
      const other = await startService()
      try {
        const stream = await openEvents(other.url, QUERY)
        await say(other.url, 'hi')
        const { id } = await nextOf(stream)
        await stream.leave()
        const ask = async (query: string, headers: Record<string, string> = {}) => {
          const { status, body } = await fresh(service.url).send({ method: 'GET', path: EVENTS + query, headers })
          const { error_code, error } = body as { error_code: string; error: string }
          return { status, error_code, error }
        }
        for (const cursor of [id!, 'x', '%25', 'A'.repeat(5_000), Buffer.from('feed:a~1').toString('base64url')]) {
          expect(await ask('', { 'last-event-id': cursor })).to.include({ status: 400, error_code: 'CURSOR_INVALID' })
          expect(await ask(`?after=${cursor}`)).to.include({ status: 400, error_code: 'CURSOR_INVALID' })
        }
        const unknown = await ask('?type=turn_started')
        expect(unknown).to.include({ status: 400, error_code: 'INVALID_VALUE' })
        expect(unknown.error).to.match(/did you mean "types"/)
        for (const query of ['?types=', '?types=a,,b', '?types=A*b', '?after=', `?request_id=${'a'.repeat(201)}`])
          expect(await ask(query), query).to.include({ status: 400, error_code: 'INVALID_VALUE' })
      } finally {
        await other[Symbol.asyncDispose]()
      }
    }))

  it('costs bounded memory for a client that never reads', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startService({ home })
      const { hostname, port } = new URL(service.url)
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      socket.pause()
      socket.write(`GET ${EVENTS} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`)
      const published = await fresh(service.url).get('/flood?count=100000')
      const { before, after } = JSON.parse(published.text) as { before: number; after: number }
      expect(after - before, 'bytes of heap after a collection').to.be.below(48 * 1024 * 1024)
      socket.destroy()
    }))
})
