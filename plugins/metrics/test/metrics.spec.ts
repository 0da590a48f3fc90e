import { expect } from 'chai'
import { once } from 'node:events'
import type { ModelDone, Route } from '@svc/core/contracts'
import { Chat, Http, MetricSources, Routes } from '@svc/core/contracts'
import { definePlugin, type RunningHost, systemUse } from '@svc/core'
import { item, testHost } from '@svc/core/testing'

const use = systemUse(new AbortController().signal)
const hello: Route = { method: 'GET', path: '/hello/:name', summary: 'Greets', handle: async () => ({ body: { hello: true } }) }
const folder = (name: string) => new URL(`../../${name}/`, import.meta.url)

const begin = (...give: Parameters<typeof item>[]) =>
  testHost([folder('http'), folder('metrics')], {
    config: { server: { port: 0 } },
    give: [item(Routes, 'hello', hello), ...give.map(one => item(...one))],
  })

async function scrape(host: RunningHost) {
  const { url } = (await host.service(Http).address(use))!
  const response = await fetch(`${url}/metrics`)
  return { status: response.status, type: response.headers.get('content-type'), text: await response.text(), url }
}

describe('metrics', () => {
  it('tells requests by method, route and status, in the text format of Prometheus', async () => {
    await using host = await begin()
    const { url } = await scrape(host)
    for (const name of ['a', 'b']) await (await fetch(`${url}/hello/${name}?token=secret`)).text()
    await (await fetch(`${url}/nothing/secret`)).text()
    const { status, type, text } = await scrape(host)
    expect(status).to.equal(200)
    expect(type).to.match(/^text\/plain; version=0\.0\.4/)
    expect(text).to.include('# TYPE svc_requests_total counter')
    expect(text).to.include('svc_requests_total{method="GET",route="/hello/:name",status="200"} 2')
    expect(text).to.include('svc_requests_total{method="GET",route="none",status="404"} 1')
    expect(text).not.to.include('secret')
  })

  it('tells durations in buckets whose bounds are written as documented', async () => {
    await using host = await begin()
    const { text } = await scrape(host)
    expect(text).to.include('# TYPE svc_request_duration_seconds histogram')
    for (const le of ['0.1', '1.0', '+Inf']) expect(text).to.include(`svc_request_duration_seconds_bucket{le="${le}",`)
    expect(text).not.to.match(/le="\d+"/)
    expect(text).to.match(/svc_request_duration_seconds_count\{/)
    expect(text).to.match(/svc_request_duration_seconds_sum\{/)
  })

  it("tells Node's own figures, unless they are switched off", async () => {
    await using host = await begin()
    const { text } = await scrape(host)
    expect(text).to.match(/^process_resident_memory_bytes \d+/m)
    expect(text).to.match(/^nodejs_eventloop_lag_seconds/m)
    await host.close()
    await using bare = await testHost([folder('http'), folder('metrics')], {
      config: { server: { port: 0 }, metrics: { node: false } },
    })
    expect((await scrape(bare)).text).not.to.include('process_resident_memory_bytes')
  })

  it('tells what each plugin costs on each hook', async () => {
    await using host = await begin()
    await scrape(host)
    const { text } = await scrape(host)
    expect(text).to.match(/svc_hook_calls_total\{plugin="@svc\/plugin-metrics",hook="http.done"\} \d+/)
    expect(text).to.match(/svc_hook_seconds_total\{plugin="@svc\/plugin-metrics",hook="http.done"\} /)
    expect(text).to.match(/svc_hook_errors_total\{plugin="@svc\/plugin-metrics",hook="http.done"\} 0/)
  })

  it('tells tokens by provider and model, and does not let callers invent models without end', async () => {
    const asked = Array.from({ length: 300 }, (_, at) => modelDone(`m${at}`))
    const chat = definePlugin({
      provides: Chat,
      setup(scope) {
        void Promise.all(asked.map(done => scope.hooks.modelDone(done, use))).then(() => told.dispatchEvent(new Event('told')))
        return { reply: () => Promise.reject(new Error('unused')), async *stream() {} }
      },
    })
    const told = new EventTarget()
    const all = once(told, 'told')
    await using host = await testHost([folder('http'), folder('metrics'), { name: 'chat', use: chat }], {
      config: { server: { port: 0 } },
    })
    await all
    const { text } = await scrape(host)
    expect(text).to.include('svc_tokens_total{provider="p",model="m0",kind="input"} 3')
    expect(text).to.include('svc_model_calls_total{provider="p",model="m0",outcome="ok"} 1')
    expect(text).to.include('svc_tokens_total{provider="p",model="other",kind="output"} 200')
    expect(text.match(/svc_model_seconds_total\{/g)).to.have.lengthOf(201)
  })

  it('joins the figures of other sources, and goes on without one that fails', async () => {
    const good = {
      name: 'svc_test_total',
      help: 'A test.',
      type: 'counter',
      aggregator: 'sum',
      values: [{ labels: { of: 'x' }, value: 7 }],
    } as const
    await using host = await begin(
      [MetricSources, 'good', { read: async () => [good] }],
      [MetricSources, 'bad', { read: () => Promise.reject(new Error('broken')) }]
    )
    const { status, text } = await scrape(host)
    expect(status).to.equal(200)
    expect(text).to.include('svc_test_total{of="x"} 7').and.include('svc_requests_total')
  })

  it('never counts backwards', async () => {
    await using host = await begin()
    const count = async () =>
      Number(/^svc_requests_total\{method="GET",route="\/metrics",status="200"\} (\d+)/m.exec((await scrape(host)).text)![1])
    const seen = [await count(), await count(), await count()]
    expect(seen).to.deep.equal([0, 1, 2])
  })
})

function modelDone(model: string): ModelDone {
  const profile = { name: 'default' }
  const source = { provider: 'default', model: 'default' } as const
  return {
    selected: { provider: 'p', model, source, profile, mode: 'build', fallback: [] },
    request: { model, messages: [] },
    round: 1,
    attempt: 1,
    usage: { input: 3, output: 2 },
    durationMs: 5,
    firstMs: 1,
  }
}
