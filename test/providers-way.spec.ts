import { expect } from 'chai'
import { wait } from './support/wait.ts'
import { createClient } from './support/client.ts'
import { replyOf, streamProblems } from './support/events.ts'
import { openProxy } from './support/proxy.ts'
import { openScene } from './support/scene.ts'
import { WIRES } from './support/wires.ts'

const becomes = async (holds: () => boolean) => {
  while (!holds()) await wait()
}

describe('a silent upstream', () => {
  for (const type of Object.keys(WIRES))
    it(`is a time-out over ${type}, and its socket is closed: before the first token, between two, before a whole answer`, async () => {
      const limits = { first_token_timeout_ms: 1000, token_timeout_ms: 1000 }
      await using quiet = await openScene([type], { limits })
      const silent = quiet.upstreamOf(type)
      const other = createClient(quiet.service.url)
      const details = { provider: `my-${type}`, retryable: true }
      // what a provider loads with its first call is not silence of its upstream
      for (let status = 0; status !== 200; ) ({ status } = await other.post('/api/v1/chat', asks(type, 'plain')))
      const before = silent.received.length
      for (const path of ['/api/v1/chat', '/api/v1/chat/stream']) {
        const { status, body } = await other.post(path, asks(type, 'silent'))
        expect(status).to.equal(503)
        expect(body).to.deep.include({ error_code: 'PROVIDER_ERROR', details })
        expect((body as { error: string }).error).to.include('did not begin its answer for 1000 ms')
        await becomes(() => silent.sockets() === 0)
      }
      const { events } = await (
        await other.stream({ method: 'POST', path: '/api/v1/chat/stream', body: asks(type, 'stalled') })
      ).rest()
      expect(streamProblems(events)).to.deep.equal([])
      expect(replyOf(events)).to.not.equal('')
      const error = events.at(-2)?.data
      expect(error).to.deep.include({ type: 'error', error_code: 'PROVIDER_ERROR', details })
      expect(error?.error).to.include('sent no events for 1000 ms')
      const end = events.at(-1)?.data
      expect(end).to.deep.include({ type: 'end', status: 'failed' })
      const tokens = end?.tokens_used as { input: number; output: number }
      expect(Math.min(tokens.input, tokens.output)).to.be.above(0)
      await becomes(() => silent.sockets() === 0)
      expect(silent.received.slice(before)).to.have.lengthOf(3)
      const { text } = await other.get('/metrics')
      for (const [model, times] of [
        ['silent', 2],
        ['stalled', 1],
      ] as const)
        expect(text).to.include(`svc_model_calls_total{provider="my-${type}",model="${model}",outcome="timeout"} ${times}\n`)
      for (const kind of ['input', 'output'] as const)
        expect(text).to.include(`svc_tokens_total{provider="my-${type}",model="stalled",kind="${kind}"} ${tokens[kind]}\n`)
      other.close()
    })
})

const asks = (type: string, model: string) => ({ message: 'hi', provider: `my-${type}`, model, tools: [] })

describe('the proxy of the environment', () => {
  const types = Object.keys(WIRES)
  /** What each wire answers, through a service that is started with these variables. */
  async function answersWith(variables: Readonly<Record<string, string>>) {
    await using scene = await openScene(types, { variables: { NODE_USE_ENV_PROXY: '1', ...variables } })
    const client = createClient(scene.service.url)
    const answers = []
    for (const type of types) answers.push(await client.post('/api/v1/chat', asks(type, 'plain')))
    client.close()
    await scene.service.stop()
    const upstreams = types.map(scene.upstreamOf)
    return {
      answers: answers.map(({ status, text }) => `${status} ${text}`),
      hosts: upstreams.map(upstream => new URL(upstream.url).host),
      reached: upstreams.map(upstream => upstream.received.length),
      output: scene.service.output(),
    }
  }
  const all = <T>(value: T) => types.map(() => value)

  it('is the way of all wires where Node goes it, but to the hosts that the environment leaves out', async () => {
    await using proxy = await openProxy()
    const through = await answersWith({ HTTP_PROXY: proxy.url })
    expect(through.answers.map(answer => answer.slice(0, 3))).to.deep.equal(all('200'))
    expect(proxy.asked.splice(0)).to.deep.equal(through.hosts)
    const past = await answersWith({ HTTP_PROXY: proxy.url, NO_PROXY: '127.0.0.1' })
    expect([past.reached, proxy.asked]).to.deep.equal([all(1), []])
  })

  it('is not bypassed when it refuses, and its password is never shown', async () => {
    await using proxy = await openProxy(407)
    const { host } = new URL(proxy.url)
    const { answers, reached, output } = await answersWith({ HTTP_PROXY: `http://somebody:canary-4711@${host}` })
    expect(answers.map(answer => answer.slice(0, 3))).to.deep.equal(all('503'))
    expect([reached, proxy.asked.length]).to.deep.equal([all(0), types.length])
    expect(answers.join() + output).to.not.match(/canary-4711|c29tZWJvZHk6/)
  })
})
