import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createClient, isApiError } from '@svc/client'
import { expect } from 'chai'
import { inNewHome, startService } from '../support/service.ts'
import { openCuttingProxy } from './support/cutting-proxy.ts'

const RUNS = fileURLToPath(new URL('../support/runs.ts', import.meta.url))
const reconnect = { minDelayMs: 1, retries: 3 }

describe('the client and connections that are cut', function () {
  this.timeout(60_000)

  it('reads a run as a whole, wherever its stream is cut', () =>
    inNewHome(async home => {
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [RUNS] }))
      await using service = await startService({ home })
      const svc = createClient({ url: service.url })
      const { workflow_id: id } = await svc.runs.start({ workflow: 'ask' }, { waitSeconds: 0 })
      for await (const event of svc.runs.events(id))
        if (event.type === 'node_waiting') await svc.runs.answer(id, { step: event.step, value: true })
      const whole = await Array.fromAsync(svc.runs.events(id))
      expect(whole).to.have.length.above(5)
      for (const isClean of [false, true])
        for (let events = 1; events <= whole.length; events++) {
          await using proxy = await openCuttingProxy(service.url, events, isClean)
          const cut = createClient({ url: proxy.url, reconnect })
          expect(await Array.fromAsync(cut.runs.events(id)), `cut after ${events}`).to.deep.equal(whole)
          expect(proxy.asked).to.have.length(Math.ceil(whole.length / events))
        }
    }))

  it('reads all events of the server through connections that carry three each', () =>
    inNewHome(async home => {
      await using service = await startService({ home })
      await using proxy = await openCuttingProxy(service.url, 3)
      const svc = createClient({ url: service.url })
      const cut = createClient({ url: proxy.url, reconnect })
      const seen: string[] = []
      const wanted: string[] = []
      const controller = new AbortController()
      const following = (async () => {
        for await (const event of cut.events({ types: 'turn_completed' }, { signal: controller.signal }))
          seen.push(String(event.data.conversation_id))
      })().catch((error: unknown) => error)
      while (seen.length === 0) await svc.chat.reply({ message: 'warm' })
      for (let turn = 0; turn < 10; turn++) wanted.push((await svc.chat.reply({ message: 'x' })).conversation_id)
      while (!seen.includes(wanted.at(-1)!)) await svc.chat.reply({ message: 'after' })
      controller.abort()
      expect(await following).to.have.property('name', 'AbortError')
      expect(seen.filter(conversation => wanted.includes(conversation))).to.deep.equal(wanted)
      expect(proxy.asked.length).to.be.above(3)
    }))

  it('reads the events of a route that answers with JSON or with a stream', () =>
    inNewHome(async home => {
      await using service = await startService({ home })
      const svc = createClient({ url: service.url })
      const events = await Array.fromAsync(svc.stream('get', '/api/v1/doctor'))
      const findings = events.flatMap(event => ('state' in event ? [event.name] : []))
      expect(findings).to.include('node')
      expect(events.at(-1)).to.deep.equal({ ok: true, findings: findings.length })
      const { findings: whole } = await svc.get('/api/v1/doctor')
      expect(whole.map(({ name }) => name).sort()).to.deep.equal(findings.sort())
    }))

  it('reports the limit of a server, and waits for it if it may', () =>
    inNewHome(async home => {
      const server = { rate_limit: { enabled: true, requests_per_minute: 2, requests_per_day: 1000 } }
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ server }))
      await using service = await startService({ home })
      const svc = createClient({ url: service.url, retry: { maxDelayMs: 500 } })
      const refused = async () => {
        for (;;) await svc.get('/api/v1/modes')
      }
      const error = await refused().catch((thrown: unknown) => thrown)
      if (!isApiError(error, 'RATE_LIMITED')) throw error
      expect(error.status).to.equal(429)
      expect(error.retryAfterMs).to.be.above(500).and.at.most(60_000)
      expect(error.details.retry_after).to.equal(error.retryAfterMs! / 1000)
      const began = performance.now()
      const patient = createClient({ url: service.url, retry: { retries: 1, maxDelayMs: 60_000 } })
      const waiting = patient.get('/api/v1/modes', { signal: AbortSignal.timeout(300) })
      expect(await waiting.catch((thrown: unknown) => thrown)).to.have.property('name', 'TimeoutError')
      expect(performance.now() - began).to.be.above(290)
    }))
})
