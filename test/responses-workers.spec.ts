// Not a unit test: starts servers.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { inNewHome, type Service, startService } from './support/service.ts'
import { auditResponses, newResponseLedger, startResponseLoad } from './support/response-load.ts'
import { EACH, post, startTwo, workersOf } from './support/two-workers.ts'
import { createClient } from './support/client.ts'
import type { Tree } from '../plugins/api/openai-api/test/support/api.ts'
import { streamProblems } from '../plugins/api/openai-api/test/support/open-responses.ts'
import { readEvents, textOf } from '../plugins/api/openai-api/test/support/responses.ts'

const model = 'local/local-1'

/** Answers over connections of their own: the workers take turns. */
async function make({ url }: Service, body: Tree): Promise<Tree> {
  const { status, text } = await post(url, '/v1/responses', { model, ...body })
  expect(status, text).to.equal(200)
  return JSON.parse(text) as Tree
}

async function read({ url }: Service, id: string): Promise<Tree> {
  const { status, text } = await createClient(url, { keepAlive: false }).get(`/v1/responses/${id}`)
  expect(status, text).to.equal(200)
  return JSON.parse(text) as Tree
}

async function ended(service: Service, id: string): Promise<Tree> {
  for (;;) {
    // a worker that is killed takes its connections with it
    const body = await read(service, id).catch((error: unknown) => {
      if ((error as Error).name === 'AssertionError') throw error
      return { status: 'queued' }
    })
    if (body.status !== 'queued' && body.status !== 'in_progress') return body
    await sleep(100)
  }
}

const again = async ({ url }: Service, id: string, after = -1) =>
  readEvents(
    await fetch(`${url}/v1/responses/${id}?stream=true${after < 0 ? '' : `&starting_after=${after}`}`, {
      headers: { connection: 'close' },
    })
  )

describe('responses of a server with two workers', function () {
  this.timeout(180_000)

  it('can be read, continued, streamed again and cancelled by any of them', () =>
    inNewHome(async home => {
      await using service = await startTwo({ home })
      let last = await make(service, { input: 'one', store: true })
      for (const turn of EACH) {
        expect(await read(service, last.id)).to.deep.equal(last)
        last = await make(service, { input: 'more', store: true, previous_response_id: last.id })
        expect(textOf(last)).to.equal(`You said: more (turn ${turn + 1})`)
      }
      for (const _ of EACH) {
        const { id } = await make(service, { input: 'one two three\n/pace 100', background: true })
        const [first, second] = await Promise.all([again(service, id), again(service, id, 3)])
        expect(streamProblems(first.events)).to.deep.equal([])
        expect(second.events).to.deep.equal(first.events.slice(4))
        const slow = await make(service, { input: 'one two three\n/pace 60000', background: true })
        expect((await post(service.url, `/v1/responses/${slow.id}/cancel`, {})).text).to.include('"cancelled"')
        expect((await read(service, slow.id)).status).to.equal('cancelled')
      }
    }))

  it('in the background survive the death of the worker that makes them', () =>
    inNewHome(async home => {
      await using service = await startTwo({ home })
      const input = 'one two three four five six\n/pace 400'
      const made = await Promise.all(Array.from({ length: 6 }, () => make(service, { input, background: true })))
      for (const { id } of made) while ((await read(service, id)).status === 'queued') await sleep(50)
      const [victim] = await workersOf(home)
      process.kill(victim!, 'SIGKILL')
      let restarts = 0
      for (const { id } of made) {
        const done = await ended(service, id)
        expect([done.status, textOf(done)]).to.deep.equal(['completed', 'You said: one two three four five six'])
        const { events, response, of } = await again(service, id)
        expect(events.map(({ sequence_number }) => sequence_number)).to.deep.equal(events.map((_, at) => at))
        expect(response).to.deep.equal(done)
        restarts += of('response.in_progress').length - 1
      }
      expect(restarts, 'responses that were made again').to.be.greaterThan(0)
    }))

  it('are all there after kills of the whole server, if they were acknowledged', () =>
    inNewHome(async home => {
      const ledger = newResponseLedger()
      for (let kill = 0; kill < 3; kill++) {
        await using service = await startService({ home })
        const load = startResponseLoad(service.url, ledger, 4)
        await load.reached(20)
        await service.kill()
        await load.broken()
      }
      await using service = await startService({ home })
      expect(await auditResponses(service.url, ledger)).to.deep.equal([])
      expect(ledger.stored.length + ledger.background.length).to.be.greaterThan(59)
    }))
})
