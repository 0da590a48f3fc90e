import { expect } from 'chai'
import type { ModelDone, Route } from '@svc/core/contracts'
import { ModelCalls, Http, MetricSources, Routes } from '@svc/core/contracts'
import { definePlugin, type RunningHost, systemContext } from '@svc/core'
import { item, testHost } from '@svc/testing'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const ctx = systemContext(new AbortController().signal)
const hello: Route = { method: 'GET', path: '/hello/:name', summary: 'Greets', handle: async () => ({ body: { hello: true } }) }

const begin = (...give: Parameters<typeof item>[]) =>
  testHost([pluginFolder('http'), pluginFolder('metrics')], {
    config: { server: { port: 0 } },
    give: [item(Routes, 'hello', hello), ...give.map(entry => item(...entry))],
  })

async function scrape(host: RunningHost) {
  const { url } = (await host.service(Http).address(ctx))!
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
    await using bare = await testHost([pluginFolder('http'), pluginFolder('metrics')], {
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
    const text = await scrapeAfter(Array.from({ length: 300 }, (_, at) => modelDone(`m${at}`)))
    expect(text).to.include('svc_tokens_total{provider="p",model="m0",kind="input"} 3')
    expect(text).to.include('svc_model_calls_total{provider="p",model="m0",outcome="ok"} 1')
    expect(text).to.include('svc_tokens_total{provider="p",model="other",kind="output"} 200')
    expect(text.match(/svc_model_seconds_total\{/g)).to.have.lengthOf(201)
  })

  it('tells how long models took to begin, without the calls that never did', async () => {
    const failure = { kind: 'overloaded', retryable: true } as const
    const text = await scrapeAfter([
      { ...modelDone('m'), firstMs: 200 },
      { ...modelDone('m'), firstMs: 40_000 },
      { ...modelDone('m'), firstMs: 0, failure },
    ])
    const of = (what: string) => `svc_model_first_token_seconds${what}`
    expect(text).to.include(of('_bucket{le="0.1",provider="p",model="m"} 0'))
    expect(text).to.include(of('_bucket{le="0.25",provider="p",model="m"} 1'))
    expect(text).to.include(of('_bucket{le="30.0",provider="p",model="m"} 1'))
    expect(text).to.include(of('_count{provider="p",model="m"} 2'))
    expect(text).to.include(of('_sum{provider="p",model="m"} 40.2'))
    expect(text).to.include('svc_model_calls_total{provider="p",model="m",outcome="overloaded"} 1')
  })

  it('tells cached and reasoning tokens beside those that they are a part of', async () => {
    const text = await scrapeAfter([{ ...modelDone('m'), usage: { input: 9, output: 8, cached: 7, reasoning: 6 } }])
    expect(text).to.include('svc_tokens_total{provider="p",model="m",kind="input"} 9')
    expect(text).to.include('svc_cached_tokens_total{provider="p",model="m"} 7')
    expect(text).to.include('svc_reasoning_tokens_total{provider="p",model="m"} 6')
  })

  it('tells calls whose caller left before their end apart from those that ended well', async () => {
    const { events: _none, ...left } = modelDone('m')
    const failed: ModelDone = { ...left, failure: { kind: 'overloaded', retryable: true } }
    const text = await scrapeAfter([modelDone('m'), { ...left, firstMs: 0 }, left, failed])
    const calls = [...text.matchAll(/^svc_model_calls_total\{.*outcome="(\w+)"\} (\d+)/gm)].map(
      ([, outcome, count]) => `${outcome} ${count}`
    )
    expect(calls).to.deep.equal(['ok 1', 'cancelled 2', 'overloaded 1'])
  })

  it('counts no call and no token of what was answered without the model', async () => {
    const text = await scrapeAfter([{ ...modelDone('m'), answered: true }])
    expect(text).to.not.match(/^svc_(model|tokens).*model="m"/m)
  })

  it('joins the figures of other sources, and goes on without those that fail or never answer', async () => {
    const good = {
      name: 'svc_test_total',
      help: 'A test.',
      type: 'counter',
      aggregator: 'sum',
      values: [{ labels: { of: 'x' }, value: 7 }],
    } as const
    await using host = await begin(
      [MetricSources, 'good', { read: async () => [good] }],
      [MetricSources, 'bad', { read: () => Promise.reject(new Error('broken')) }],
      [MetricSources, 'silent', { read: () => new Promise(() => {}) }]
    )
    const { status, text } = await scrape(host)
    expect(status).to.equal(200)
    expect(text).to.include('plugin_test_metric_sources_good_svc_test_total{of="x"} 7').and.include('svc_requests_total')
  })

  it('spells NaN as the text format does, in values only', async () => {
    const odd = {
      name: 'svc_test_seconds',
      help: 'ends with Nan',
      type: 'gauge',
      aggregator: 'sum',
      values: [{ labels: { of: 'x Nan' }, value: Number.NaN }],
    } as const
    await using host = await begin([MetricSources, 'odd', { read: async () => [odd] }])
    const { text } = await scrape(host)
    const name = 'plugin_test_metric_sources_odd_svc_test_seconds'
    expect(text).to.include(`# HELP ${name} ends with Nan\n`).and.include(`${name}{of="x Nan"} NaN\n`)
  })

  it('has no delays of the event loop without a sample', async () => {
    await using host = await begin()
    const lags = (text: string) => text.split('\n').filter(line => /^nodejs_eventloop_lag_\w+_seconds /.test(line))
    const scrapes: string[][] = []
    // Each scrape resets the histogram, and its resolution is 10 ms: of several in a row, some find it empty.
    for (let round = 0; round < 30; round++) scrapes.push(lags((await scrape(host)).text))
    expect(scrapes.filter(lines => lines.length === 0)).to.not.be.empty
    expect(scrapes.flat().filter(line => !/ \d+(?:\.\d+)?(?:e-\d+)?$/.test(line) || / 9223372036/.test(line))).to.deep.equal([])
  })

  it('never counts backwards', async () => {
    await using host = await begin()
    const count = async () =>
      Number(/^svc_requests_total\{method="GET",route="\/metrics",status="200"\} (\d+)/m.exec((await scrape(host)).text)![1])
    const seen = [await count(), await count(), await count()]
    expect(seen).to.deep.equal([0, 1, 2])
  })
})

/** Returns the exposition after these model calls. */
async function scrapeAfter(done: readonly ModelDone[]): Promise<string> {
  const all = Promise.withResolvers<unknown>()
  const modelCalls = definePlugin({
    provides: ModelCalls,
    setup(scope) {
      all.resolve(Promise.all(done.map(entry => scope.hooks.modelDone(entry, ctx))))
      return { reply: unused, async *stream() {}, embed: unused, check: unused, countTokens: unused }
    },
  })
  await using host = await testHost([pluginFolder('http'), pluginFolder('metrics'), { name: 'model-calls', use: modelCalls }], {
    config: { server: { port: 0 } },
  })
  await all.promise
  return (await scrape(host)).text
}

const unused = () => Promise.reject(new Error('unused'))

function modelDone(model: string): ModelDone {
  const profile = { name: 'default' }
  const source = { provider: 'default', model: 'default' } as const
  return {
    turn: 't',
    selected: { provider: 'p', model, source, profile, mode: 'build', fallback: [] },
    request: { model, messages: [] },
    kind: 'chat',
    round: 1,
    attempt: 1,
    tried: [],
    usage: { input: 3, output: 2 },
    durationMs: 5,
    firstMs: 1,
    events: [{ type: 'finish', reason: 'stop' }],
  }
}
