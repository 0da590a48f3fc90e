import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, createClient, isApiError, type Schemas } from '@svc/client'
import { reachServer } from '@svc/runtime'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { inNewHome, type Service, startService } from '../support/service.ts'
import { startTwo } from '../support/two-workers.ts'
import { until } from '../support/wait.ts'
import { openCuttingProxy } from './support/cutting-proxy.ts'

type ChatEvent = Schemas['ChatEvent']

const GATES = fileURLToPath(new URL('../support/gates.ts', import.meta.url))
const reconnect = { minDelayMs: 1, retries: 5 }
const WORDS = Array.from({ length: 60 }, (_, at) => `word${at}`).join(' ')

const textOf = (events: readonly ChatEvent[]) => events.flatMap(event => (event.type === 'token' ? [event.content] : [])).join('')

async function storedIn(svc: Client, events: readonly ChatEvent[]) {
  const [start] = events
  if (start?.type !== 'start') throw new Error('the first event is not start')
  const path = { id: start.conversation_id }
  const { messages } = await svc.get('/api/v1/conversations/{id}', { path })
  return messages.at(-1) as { readonly content: string; readonly status?: string }
}

/** The stored reply, once there is one. */
const stored = (svc: Client, events: readonly ChatEvent[]) => until(() => storedIn(svc, events).catch(() => undefined), Boolean)

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.catch((thrown: unknown) => thrown)
  return isApiError(error) ? `${error.status} ${error.code}` : String(error)
}

/** Sends a message and leaves after so many events. */
async function leave(svc: Client, body: object, count: number, signal?: AbortController) {
  const events: ChatEvent[] = []
  const stream = svc.chat.stream({ message: `/pace 100\n${WORDS}`, ...body }, { signal: signal?.signal })
  for await (const event of stream) {
    events.push(event)
    if (events.length < count) continue
    if (!signal) break
    signal.abort(new Error('left'))
  }
  return { events, turn: stream.turnId! }
}

async function withServer(config: object, test: (svc: Client, service: Service) => Promise<unknown>): Promise<void> {
  await inNewHome(async home => {
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    await using service = await startService({ home })
    await test(createClient({ url: service.url }), service)
  })
}

describe('a chat of the client', function () {
  this.timeout(120_000)

  it('is whole and as it is stored, wherever its connections are cut', () =>
    withServer({}, async (svc, { url }) => {
      const message = 'one two three four'
      const whole = await Array.fromAsync(svc.chat.stream({ message }))
      const typesOf = (events: readonly ChatEvent[]) => events.map(({ type }) => type)
      expect(whole).to.have.length.above(6)
      for (const isClean of [false, true])
        for (let count = 1; count <= whole.length; count++) {
          await using proxy = await openCuttingProxy(url, count, isClean)
          const cut = createClient({ url: proxy.url, reconnect })
          const stream = cut.chat.stream({ message })
          const events = await Array.fromAsync(stream)
          expect(typesOf(events), `cut after ${count}`).to.deep.equal(typesOf(whole))
          expect(textOf(events)).to.equal(textOf(whole))
          expect(textOf(events)).to.equal((await storedIn(svc, events)).content)
          expect(events.at(-1)).to.include({ type: 'end', status: 'completed' })
          expect(proxy.asked).to.have.length(Math.ceil(whole.length / count))
          expect(stream.lastEventId).to.equal(String(whole.length))
        }
    }))

  it('is whole while its connections are cut and the server reloads', () =>
    inNewHome(async home => {
      await using service = await startTwo({ home })
      await using proxy = await openCuttingProxy(service.url, 4)
      const svc = createClient({ url: service.url })
      const cut = createClient({ url: proxy.url, reconnect })
      const events: ChatEvent[] = []
      let reloading: Promise<unknown> | undefined
      for await (const event of cut.chat.stream({ message: `/pace 40\n${WORDS}` })) {
        events.push(event)
        reloading ??= (async () => {
          using server = await reachServer(home)
          expect((await server.control.reload(testContext())).problems).to.deep.equal([])
        })()
      }
      await reloading
      expect(events.at(-1)).to.include({ type: 'end', status: 'completed' })
      expect(textOf(events)).to.contain('word0 ').and.contain('word59')
      expect(textOf(events)).to.equal((await storedIn(svc, events)).content)
      expect(proxy.asked).to.have.length.above(10)
    }))

  it('is cancelled by leaving its loop, by an abort and by cancel, long before chat.resume_s', () =>
    withServer({}, async svc => {
      const left = await leave(svc, {}, 4)
      expect(await stored(svc, left.events)).to.include({ status: 'cancelled' })
      const controller = new AbortController()
      const aborted: ChatEvent[] = []
      const reading = (async () => {
        for await (const event of svc.chat.stream({ message: `/pace 100\n${WORDS}` }, { signal: controller.signal }))
          if (aborted.push(event) === 4) controller.abort(new Error('enough'))
      })()
      expect(await codeOf(reading)).to.equal('Error: enough')
      expect(await stored(svc, aborted)).to.include({ status: 'cancelled' })
      const events: ChatEvent[] = []
      const stream = svc.chat.stream({ message: `/pace 100\n${WORDS}` })
      for await (const event of stream) if (events.push(event) === 4) await svc.chat.cancel(stream.turnId!)
      expect(events.at(-1)).to.include({ type: 'end', status: 'cancelled' })
      expect(events).to.have.length.below(20)
    }))

  it('goes on with detach, and another stream reads it from any place', () =>
    withServer({ chat: { resume_s: 2 } }, async (svc, { url }) => {
      const { events, turn } = await leave(svc, { detach: true, message: `/pace 20\n${WORDS}` }, 4)
      await using proxy = await openCuttingProxy(url, 7)
      const cut = createClient({ url: proxy.url, reconnect })
      const whole = await Array.fromAsync(cut.chat.resume(turn))
      expect(whole.slice(0, 4)).to.deep.equal(events)
      expect(whole.at(-1)).to.include({ type: 'end', status: 'completed' })
      expect(textOf(whole)).to.equal((await storedIn(svc, whole)).content)
      expect(await Array.fromAsync(svc.chat.resume(turn, { after: '4' }))).to.deep.equal(whole.slice(4))
      await until(
        () => codeOf(Array.fromAsync(svc.chat.resume(turn))),
        code => code === '404 TURN_LOST'
      )
      expect(await codeOf(svc.chat.cancel(turn))).to.equal('404 TURN_LOST')
    }))

  it('only closes the connection when a resumed stream is left', () =>
    withServer({}, async svc => {
      const first = svc.chat.stream({ message: `/pace 10\n${WORDS}` })[Symbol.asyncIterator]()
      const { value: start } = await first.next()
      for await (const _ of svc.chat.resume((start as Schemas['StartEvent']).turn_id)) break
      let last: ChatEvent | undefined
      for (let step = await first.next(); !step.done; step = await first.next()) last = step.value
      expect(last).to.include({ type: 'end', status: 'completed' })
    }))

  it('lists open questions and answers them, also after kill -9 of the worker of their turn', () =>
    withServer({ plugins: [GATES] }, async (svc, { url }) => {
      const pid = async () => Number(await (await fetch(`${url}/pid`)).text())
      const ask = async (message: string) => {
        const stream = svc.chat.stream({ message, interactive: true, forms: true, detach: true })
        const events: ChatEvent[] = []
        for await (const event of stream) {
          events.push(event)
          if (event.type === 'ask') break
        }
        return { events, turn: stream.turnId!, after: stream.lastEventId }
      }
      const offered = (isInterrupted: boolean) =>
        until(
          () => svc.chat.questions(),
          ([question]) => question?.interrupted === isInterrupted
        )
      expect(await svc.chat.questions()).to.deep.equal([])
      const live = await ask('/tool gate {"n":1}')
      const [first] = await offered(false)
      const { tool, turn_id, answerable } = first!
      expect({ tool, turn_id, answerable }).to.deep.equal({ tool: 'gate', turn_id: live.turn, answerable: true })
      const whole = await Array.fromAsync(svc.chat.proceed(first!, true))
      expect(whole.slice(0, live.events.length)).to.deep.equal(live.events)
      expect(whole.at(-1)).to.include({ type: 'end', status: 'completed' })
      expect(await codeOf(Array.fromAsync(svc.chat.proceed(first!, true)))).to.equal('404 INVALID_VALUE')

      const lost = await ask('/tool fill {}')
      process.kill(await pid(), 'SIGKILL')
      const [question] = await offered(true)
      expect(question!.form).to.have.nested.property('schema.required').that.deep.equals(['name'])
      const wrong = { allow: true, content: { name: 5 } }
      expect(await codeOf(Array.fromAsync(svc.chat.proceed(question!, wrong)))).to.equal('400 INVALID_VALUE')
      const asked: string[] = []
      const onAsk = (ask: Schemas['AskEvent']) => {
        asked.push(ask.question)
        return { allow: true, content: { city: 'London' } }
      }
      const stream = svc.chat.proceed(question!, { allow: true, content: { name: 'Ada' } }, { after: lost.after, onAsk })
      const rest = await Array.fromAsync(stream)
      expect([asked, stream.turnId]).to.deep.equal([['City?'], lost.turn])
      expect(rest.at(-1)).to.include({ type: 'end', status: 'completed' })
      expect(rest.find(({ type }) => type === 'tool_result')).to.include({ success: true, result: 'filled' })
      expect(() => svc.chat.proceed({ ...question!, turn_id: null }, true)).to.throw(/no stream/)
    }))

  it('takes a mode, a system prompt, parts and budgets', () =>
    withServer({}, async svc => {
      const body = { message: 'Hello', mode: 'review', system: 'Be brief', tool_budget: 1, token_budget: 100_000 }
      const events = await Array.fromAsync(svc.chat.stream(body))
      expect(textOf(events)).to.contain('Hello')
      expect(await codeOf(svc.chat.reply({ message: 'x', profile: 'none' }))).to.match(/^4/)
      const parts = [{ type: 'image' as const, media_type: 'image/png', data: 'not base64!' }]
      expect(await codeOf(svc.chat.reply({ message: 'x', parts }))).to.equal('400 INVALID_VALUE')
    }))
})
