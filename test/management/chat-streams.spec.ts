import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Answer, createClient, type OpenStream } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import type { SentEvent } from '../support/events.ts'
import { inNewHome, type Service, startService } from '../support/service.ts'
import { clientTo, configure, startTwo, workersOf } from '../support/two-workers.ts'
import { until } from '../support/wait.ts'

const PATH = '/api/v1/chat/stream'
const WORDS = Array.from({ length: 60 }, (_, at) => `word${at}`).join(' ')
const KEY = 'the-key-of-the-operator'

const dataOf = ({ data }: SentEvent) => data
const turnOf = (event: SentEvent | undefined) => String(dataOf(event!).turn_id)
const textOf = (events: readonly SentEvent[]) =>
  events
    .filter(({ event }) => event === 'token')
    .map(event => dataOf(event).content)
    .join('')
const codeOf = ({ body }: Answer) => (body as { error_code?: string }).error_code

/** Each request over a connection of its own. */
const fresh = ({ url }: Pick<Service, 'url'>) => createClient(url, { keepAlive: false })

const begin = (service: Pick<Service, 'url'>, body: object, headers: Record<string, string> = {}) =>
  fresh(service).stream({ method: 'POST', path: PATH, body, headers })

const resume = (service: Pick<Service, 'url'>, turn: string, after: number, headers: Record<string, string> = {}) =>
  fresh(service).send({ method: 'GET', path: `${PATH}/${turn}`, headers: { 'last-event-id': String(after), ...headers } })

/** Reads so many events. */
async function take(stream: OpenStream, count: number): Promise<SentEvent[]> {
  const events: SentEvent[] = []
  while (events.length < count) events.push((await stream.next())!)
  return events
}

async function lastMessage(service: Service, conversation: unknown) {
  const { body } = await fresh(service).get(`/api/v1/conversations/${String(conversation)}`)
  return (body as { messages?: { content: string; status?: string }[] }).messages?.at(-1)
}

describe('a chat stream whose connection is lost', () => {
  it('is continued at each tenth event, on either worker, and its text is the stored one', () =>
    inNewHome(async home => {
      await configure(home)
      await using service = await startTwo({ home })
      const [first, second] = await workersOf(home)
      for (const start of [first, second])
        for (let at = 1; at <= 61; at += 10) {
          const at1 = await clientTo(service.url, pid => pid === start)
          const at2 = await clientTo(service.url, pid => pid !== start)
          const open = await at1.stream({ method: 'POST', path: PATH, body: { message: `/pace 1\n${WORDS}` } })
          const before = await take(open, at)
          await open.leave()
          const rest = await at2.send({
            method: 'GET',
            path: `${PATH}/${turnOf(before[0])}`,
            headers: { 'last-event-id': String(before.at(-1)!.id) },
          })
          expect(rest.status, rest.text).to.equal(200)
          const all = [...before, ...rest.events]
          expect(all.map(({ id }) => Number(id))).to.deep.equal(all.map((_, index) => index + 1))
          expect(dataOf(all.at(-1)!)).to.include({ type: 'end', status: 'completed' })
          const { content } = (await lastMessage(service, dataOf(all[0]!).conversation_id))!
          expect(textOf(all)).to.equal(content).and.contain('word59')
          at1.close()
          at2.close()
        }
    }))

  it('can be read again from its start after its end, until chat.resume_s have passed', () =>
    inNewHome(async home => {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ chat: { resume_s: 2 } }))
      await using service = await startService({ home })
      const whole = await (await begin(service, { message: WORDS })).rest()
      const turn = turnOf(whole.events[0])
      expect((await resume(service, turn, 0)).events).to.deep.equal(whole.events)
      expect((await resume(service, turn, whole.events.length)).events).to.deep.equal([])
      const gone = await until(
        () => resume(service, turn, 0),
        ({ status }) => status !== 200
      )
      expect([gone.status, codeOf(gone)]).to.deep.equal([404, 'INVALID_VALUE'])
    }))

  it('is cancelled when it is not continued, or at once by the cancel route, and continues to its end with detach', () =>
    inNewHome(async home => {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ chat: { resume_s: 1 } }))
      await using service = await startTwo({ home })
      const message = `/pace 100\n${WORDS}`
      const opened = async (body: object) => {
        const stream = await begin(service, body)
        const [start] = await take(stream, 3)
        return { stream, turn: turnOf(start), conversation: dataOf(start!).conversation_id }
      }
      const left = await opened({ message })
      await left.stream.leave()
      await until(
        () => lastMessage(service, left.conversation),
        last => last?.status === 'cancelled'
      )
      const cancelled = await opened({ message })
      for (const _ of [1, 2]) {
        const answer = await fresh(service).post(`${PATH}/${cancelled.turn}/cancel`, undefined)
        expect([answer.status, answer.body]).to.deep.equal([200, { success: true }])
      }
      expect(dataOf((await cancelled.stream.rest()).events.at(-1)!)).to.include({ type: 'end', status: 'cancelled' })
      const detached = await opened({ message: `/pace 40\n${WORDS}`, detach: true })
      await detached.stream.leave()
      const stored = (await until(
        () => lastMessage(service, detached.conversation),
        last => last !== undefined
      ))!
      expect(stored.status).to.equal(undefined)
      expect(stored.content).to.contain('word59')
    }))

  it('is continued while the server is reloaded, on the new workers', () =>
    inNewHome(async home => {
      await using service = await startTwo({ home })
      const open = await begin(service, { message: `/pace 60\n${WORDS}` })
      const before = await take(open, 5)
      await open.leave()
      const reloaded = await runSvc(['reload'], { home })
      expect(reloaded.code, reloaded.err).to.equal(0)
      const rest = await resume(service, turnOf(before[0]), 5)
      expect(rest.status, rest.text).to.equal(200)
      expect(textOf([...before, ...rest.events]))
        .to.contain('word0 ')
        .and.contain('word59')
      expect(dataOf(rest.events.at(-1)!)).to.include({ type: 'end', status: 'completed' })
    }))

  it('serves a second reader although the first reads nothing', () =>
    inNewHome(async home => {
      await using service = await startService({ home })
      const long = 'x'.repeat(199_000)
      const stuck = await begin(service, { message: `${long}` })
      const before = await take(stuck, 1)
      stuck.pause()
      const rest = await resume(service, turnOf(before[0]), 1)
      expect(dataOf(rest.events.at(-1)!)).to.include({ type: 'end', status: 'completed' })
      stuck.resume()
      const first = await stuck.rest()
      expect(textOf(first.events)).to.equal(textOf(rest.events))
    }))

  it('belongs to its principal: others learn nothing, whatever they send', () =>
    inNewHome(async home => {
      const env = { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true' }
      await using service = await startTwo({ home, env })
      const create = async (name: string, scope: string) => ({
        authorization: `Bearer ${(await runSvc(['tokens', 'create', '--name', name, '--scope', scope], { home })).out.trim()}`,
      })
      const [anna, ben, admin, reader] = [
        await create('anna', 'chat'),
        await create('ben', 'chat'),
        await create('root', 'chat,admin'),
        await create('reader', 'read'),
      ]
      const open = await begin(service, { message: `/pace 50\n${WORDS}` }, anna)
      const turn = turnOf((await take(open, 2))[0])
      await open.leave()
      const unknown = `turn_${'0'.repeat(32)}_${turn.split('_').at(-1)}`
      for (const who of [ben, admin])
        for (const _ of [1, 2, 3, 4]) {
          const [other, none] = [await resume(service, turn, 0, who), await resume(service, unknown, 0, who)]
          expect([other.status, none.status]).to.deep.equal([404, 404])
          expect(other.text.replaceAll(turn, 'T').replace(/"request_id":"[^"]*"/, '')).to.equal(
            none.text.replaceAll(unknown, 'T').replace(/"request_id":"[^"]*"/, '')
          )
          const cancel = { method: 'POST', path: `${PATH}/${turn}/cancel`, headers: who }
          expect((await fresh(service).send(cancel)).status).to.equal(404)
        }
      expect((await resume(service, turn, 0, reader)).status).to.equal(403)
      for (const [id, after, status] of [
        [turn, '-1', 400],
        [turn, 'x', 400],
        [turn, '100000', 400],
        ['turn_', '0', 404],
        ['%00', '0', 404],
        [`turn_${'0'.repeat(32)}_${Buffer.from('../x').toString('base64url')}`, '0', 404],
        [`turn_${'0'.repeat(32)}_${'A'.repeat(5_000)}`, '0', 404],
      ] as const) {
        const headers = { 'last-event-id': after, ...anna }
        const answer = await fresh(service).send({ method: 'GET', path: `${PATH}/${id}`, headers })
        expect(answer.status, `${id.slice(0, 60)} after ${after}: ${answer.text.slice(0, 200)}`).to.equal(status)
        if (after === '100000') expect(answer.text).to.match(/the position \(Last-Event-ID or after\) must be from 0 to \d+/)
      }
      const rest = await resume(service, turn, 0, anna)
      expect(dataOf(rest.events.at(-1)!)).to.include({ status: 'completed' })
    }))
})
