import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Answerer, openUpstream } from '@svc/testing'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { replyOf, streamProblems } from './support/events.ts'
import { inNewHome, startService } from './support/service.ts'

const USAGE = { prompt_tokens: 500_000, completion_tokens: 100_000, total_tokens: 600_000 }

/** A server of chat completions that says its name. */
const saying =
  (name: string): Answerer =>
  async ({ body }, reply) => {
    if (!(body as { stream?: boolean }).stream)
      return reply.json(200, {
        choices: [{ message: { role: 'assistant', content: name }, finish_reason: 'stop' }],
        usage: USAGE,
      })
    const frame = (more: object) => `data: ${JSON.stringify({ object: 'chat.completion.chunk', ...more })}\n\n`
    await reply.write(frame({ choices: [{ index: 0, delta: { content: name } }] }))
    reply.end(`${frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: USAGE })}data: [DONE]\n\n`)
  }
const DOWN: Answerer = (_request, reply) => reply.json(503, { error: { message: 'down for a while' } })

const PROFILES = 'default: d\nprofiles:\n  d: { provider: main, model: m, fallback: [{ provider: spare, model: m }] }\n'

describe('an outage of a provider, seen from outside', () => {
  it('loses no turn, streamed or not; /metrics counts retries, fallbacks, breaker states and costs', async () => {
    await inNewHome(async home => {
      await using main = await openUpstream(saying('main'))
      await using spare = await openUpstream(saying('spare'))
      const entry = ({ url }: { url: string }) => ({ type: 'openai', base_url: `${url}/v1`, models: ['m'] })
      const policy = { attempts: 2, backoff_ms: 1, breaker_failures: 3, breaker_open_ms: 60_000 }
      const config = {
        providers: { main: entry(main), spare: entry(spare) },
        chat: { policy },
        models: { prices: { 'main/m': { input: 2, output: 10 }, 'spare/m': { input: 4, output: 20 } }, currency: 'EUR' },
      }
      await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
      await writeFile(join(home, 'profiles.yaml'), PROFILES)
      await using service = await startService({ home })
      const client = createClient(service.url)
      const chat = async () => {
        const { status, body } = await client.post('/api/v1/chat', { message: 'hi' })
        const { provider, response } = body as { provider: string; response: string }
        return [status, provider, response]
      }
      const streamed = async () => {
        const { events } = await client.post('/api/v1/chat/stream', { message: 'hi' })
        expect(streamProblems(events)).to.deep.equal([])
        const { status, provider } = events.at(-1)!.data as { status: string; provider: string }
        return [status, provider, replyOf(events)]
      }
      const metrics = async () =>
        (await client.get('/metrics')).text.split('\n').filter(line => /^svc_model_.*_total|^svc_model_breaker/.test(line))

      expect(await chat()).to.deep.equal([200, 'main', 'main'])
      main.answer(DOWN)
      expect(await chat()).to.deep.equal([200, 'spare', 'spare'])
      expect(await streamed()).to.deep.equal(['completed', 'spare', 'spare'])
      expect(await streamed()).to.deep.equal(['completed', 'spare', 'spare'])
      // a retry; then the third failure opens the breaker, and what comes after it is let through to nobody
      expect(main.received).to.have.lengthOf(4)
      const model = 'provider="main",model="m"'
      expect(await metrics()).to.include.members([
        `svc_model_calls_total{${model},outcome="overloaded"} 3`,
        `svc_model_retries_total{${model}} 1`,
        `svc_model_fallbacks_total{${model}} 3`,
        `svc_model_refusals_total{${model}} 1`,
        `svc_model_breaker{${model},state="closed"} 0`,
        `svc_model_breaker{${model},state="open"} 1`,
        `svc_model_cost_total{${model},currency="EUR"} 2`,
        'svc_model_cost_total{provider="spare",model="m",currency="EUR"} 12',
      ])
      client.close()
    })
  })
})

describe('the trace of a request', () => {
  it('reaches the provider that is asked', async () => {
    await inNewHome(async home => {
      await using main = await openUpstream(saying('main'))
      const providers = { main: { type: 'openai', base_url: `${main.url}/v1`, models: ['m'] } }
      await writeFile(join(home, 'svc.config.json'), JSON.stringify({ providers }))
      await using service = await startService({ home })
      const traced = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'vendor=1' }
      const headers = { 'content-type': 'application/json', ...traced }
      const body = JSON.stringify({ message: 'hi', provider: 'main', model: 'm' })
      const reply = await fetch(`${service.url}/api/v1/chat`, { method: 'POST', headers, body })
      expect(reply.status, await reply.text()).to.equal(200)
      expect(main.received[0]!.headers).to.include(traced)
    })
  })
})
