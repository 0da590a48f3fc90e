import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { inNewHome, startService } from './support/service.ts'
import { configureFew } from './support/tides.ts'
import { sideBySideIn } from './support/side-by-side.ts'

const ASKS = fileURLToPath(new URL('./support/asks.ts', import.meta.url))
const body = { message: '/tool whereabouts {}', interactive: true }

/** Connections of their own: each goes to the worker whose turn it is. */
const clientOf = (url: string) => createClient(url, { keepAlive: false })

/** An interactive stream that waits for an answer, and the answer to it. */
async function askedOn(url: string) {
  const stream = await clientOf(url).stream({ method: 'POST', path: '/api/v1/chat/stream', body })
  const events = await stream.until('ask')
  const dataOf = (at: number) => events.at(at)?.data as { request_id: string; call_id: string }
  const question = { request_id: dataOf(0).request_id, call_id: dataOf(-1).call_id }
  return { stream, answer: (allow: boolean) => clientOf(url).post('/api/v1/chat/answer', { ...question, allow }) }
}

const resultIn = (events: readonly { event: string; data: unknown }[]) =>
  events.find(event => event.event === 'tool_result')?.data as { success: boolean; result: string; error: string | null }

describe('a question about a tool', () => {
  const it = sideBySideIn<string>(run =>
    inNewHome(async home => {
      await configureFew(home, { plugins: [ASKS], chat: { resume_s: 1 } })
      await run(home)
    })
  )

  it('can be answered through any worker', async home => {
    await using service = await startService({ home, args: ['--workers', '2'] })
    await service.seen(/"event":"worker_ready"/)
    // connections are dealt out in turn: in one of the two orders each answer reaches the worker that did not ask
    for (const order of [
      [0, 1, 2, 3],
      [1, 0, 3, 2],
    ]) {
      const asked = []
      for (const _ of order) asked.push(await askedOn(service.url))
      for (const at of order) {
        const said = await asked[at]!.answer(true)
        expect([said.status, said.body]).to.deep.equal([200, { success: true }])
      }
      const results = await Promise.all(asked.map(async ({ stream }) => resultIn((await stream.rest()).events)))
      expect(results.map(result => result.success)).to.deep.equal([true, true, true, true])
      expect(new Set(results.map(result => result.result)).size).to.equal(2)
      expect((await asked[0]!.answer(true)).status).to.equal(404)
      expect((await asked[1]!.answer(true)).status).to.equal(404)
    }
  })

  it('ends when its client disconnects: the conversation continues, and a later answer is rejected', async home => {
    await using service = await startService({ home })
    const client = clientOf(service.url)
    const first = await client.post('/api/v1/chat', { message: 'begin' })
    const { conversation_id } = first.body as { conversation_id: string }
    const stream = await client.stream({ method: 'POST', path: '/api/v1/chat/stream', body: { ...body, conversation_id } })
    const events = await stream.until('ask')
    await stream.leave()
    // it waits for the turn before it
    expect((await client.post('/api/v1/chat', { message: 'next', conversation_id })).body).to.include({ success: true })
    const { request_id } = events[0]!.data as { request_id: string }
    const { call_id } = events.at(-1)!.data as { call_id: string }
    const late = await client.post('/api/v1/chat/answer', { request_id, call_id, allow: true })
    expect(late.status).to.equal(404)
    const { messages } = (await client.get(`/api/v1/conversations/${conversation_id}`)).body as {
      messages: { status?: string }[]
    }
    expect(messages.map(message => message.status)).to.deep.equal([
      undefined,
      undefined,
      undefined,
      'cancelled',
      undefined,
      undefined,
    ])
  })
})
