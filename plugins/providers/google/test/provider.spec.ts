import type { ModelRequest } from '@svc/core/contracts'
import { ask, failureOf } from '@svc/testing'
import { expect } from 'chai'
import { call, ended, frame, KEY, openGeminiApi, says, texts } from './support/gemini-api.ts'
import { offered, openGoogle, to, user } from './support/google.ts'

const reads = async (stream: string) => {
  await using upstream = await openGeminiApi({ own: reply => reply.end(stream) })
  await using opened = await openGoogle(upstream.url)
  return await ask(opened.provider, to('own'))
}
const failsWith = async (answer: NonNullable<Parameters<typeof openGeminiApi>[0]>) => {
  await using upstream = await openGeminiApi(answer)
  await using opened = await openGoogle(upstream.url)
  return await failureOf(ask(opened.provider, to('own')))
}

describe('provider-google, what it reads', () => {
  it('tells thoughts apart from text, and keeps their signatures', async () => {
    const thoughts = says([{ text: 'Let me', thought: true }]) + says([{ text: ' see.', thought: true, thoughtSignature: 's1' }])
    const events = await reads(thoughts + texts('Hi') + says([{ text: '', thoughtSignature: 's2' }], { finishReason: 'STOP' }))
    expect(events.slice(0, -2)).to.deep.equal([
      { type: 'reasoning', text: 'Let me' },
      { type: 'reasoning', text: ' see.', providerData: { thoughtSignature: 's1', thought: true } },
      { type: 'text', text: 'Hi' },
      { type: 'reasoning', text: '', providerData: { thoughtSignature: 's2' } },
    ])
  })

  it('makes ids for calls that have none, keeps those that have one, and gives both back as they came', async () => {
    const first = says([call('weather', { city: 'Ulm' }, { thoughtSignature: 'sig' })])
    const second = says([{ functionCall: { id: 'fc-2', name: 'weather' } }])
    await using upstream = await openGeminiApi({
      own: (reply, { contents }) =>
        reply.end(contents.length > 1 ? texts('done') + ended('STOP') : first + second + ended('STOP')),
    })
    await using opened = await openGoogle(upstream.url)
    const calls = (await ask(opened.provider, to('own', { tools: offered }))).filter(event => event.type === 'tool_call')
    expect(calls.map(item => item.arguments)).to.deep.equal([{ city: 'Ulm' }, {}])
    expect(calls[0]!.id).to.match(/^call_\w{24}$/)
    expect(calls[1]!.id).to.equal('fc-2')
    const results = calls.map(({ id, tool }) => ({ type: 'tool_result', id, tool, content: [], isError: false }) as const)
    const messages: ModelRequest['messages'] = [
      user('hello'),
      { role: 'assistant', parts: calls },
      { role: 'tool', parts: results },
    ]
    await ask(opened.provider, to('own', { tools: offered, messages }))
    const { contents } = upstream.received.at(-1)!.body as { contents: { parts: unknown }[] }
    expect(contents[1]!.parts).to.deep.equal([
      { functionCall: { name: 'weather', args: { city: 'Ulm' } }, thoughtSignature: 'sig' },
      { functionCall: { id: 'fc-2', name: 'weather', args: {} } },
    ])
    expect(contents[2]!.parts).to.deep.equal([
      { functionResponse: { name: 'weather', response: { output: '' } } },
      { functionResponse: { id: 'fc-2', name: 'weather', response: { output: '' } } },
    ])
  })

  it('counts what was read from the cache, used by tools, and thought', async () => {
    const usage = {
      promptTokenCount: 19,
      cachedContentTokenCount: 3,
      candidatesTokenCount: 4,
      toolUsePromptTokenCount: 63,
      thoughtsTokenCount: 56,
    }
    const events = await reads(texts('42') + says([], { finishReason: 'STOP' }, usage))
    expect(events.at(-2)).to.deep.equal({ type: 'usage', usage: { input: 82, output: 60, cached: 3, reasoning: 56 } })
  })

  for (const [wire, reason] of [
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['BLOCKLIST', 'content_filter'],
    ['SPII', 'content_filter'],
    ['A_NEW_REASON', 'content_filter'],
  ] as const)
    it(`ends with ${reason} for ${wire}`, async () => {
      expect((await reads(texts('Hi') + ended(wire))).at(-1)).to.deep.equal({ type: 'finish', reason })
    })

  it('runs whole calls of an answer that was cut, and none of one that was filtered', async () => {
    const calls = says([call('weather', {})])
    expect((await reads(calls + ended('MAX_TOKENS'))).map(event => event.type)).to.deep.equal(['tool_call', 'usage', 'finish'])
    expect((await reads(calls + ended('SAFETY'))).map(event => event.type)).to.deep.equal(['usage', 'finish'])
  })

  it('returns a call that the model wrote badly as it was written, so that it can be reported', async () => {
    const finishMessage = 'Malformed function call: print(default_api.weather(city="Ul'
    const [written] = await reads(ended('MALFORMED_FUNCTION_CALL', { finishMessage }))
    expect(written).to.deep.include({ type: 'tool_call', tool: 'weather', invalid: finishMessage })
  })

  for (const candidates of [
    'null',
    '[]',
    '[null]',
    '[{"content":{"parts":7}}]',
    '[{"content":{"parts":[null,7,{"text":7},{"functionCall":7}]}}]',
  ])
    it(`passes by the candidates ${candidates}`, async () => {
      const events = await reads(`data: {"candidates":${candidates}}\n\ndata: 7\n\n${texts('Hi')}${ended('STOP')}`)
      expect(events.map(event => event.type)).to.deep.equal(['text', 'usage', 'finish'])
    })
})

describe('provider-google, when the upstream fails', () => {
  it('says when to try again, as the details of the error have it', async () => {
    await using upstream = await openGeminiApi()
    await using opened = await openGoogle(upstream.url)
    const { details } = await failureOf(ask(opened.provider, to('fail-rate_limited')))
    expect(details).to.deep.equal({ kind: 'rate_limited', retryable: true, retryAfterMs: 34_400, upstreamStatus: 429 })
  })

  it('tells why the messages were blocked', async () => {
    await using upstream = await openGeminiApi()
    await using opened = await openGoogle(upstream.url)
    expect((await failureOf(ask(opened.provider, to('fail-content_refused')))).message).to.include('PROHIBITED_CONTENT')
  })

  it('says that the same call may do better where the model wrote an unreadable reply', async () => {
    for (const reason of ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'MALFORMED_RESPONSE'])
      expect((await failsWith({ own: reply => reply.end(ended(reason)) })).details).to.deep.equal({
        kind: 'bad_request',
        retryable: true,
      })
    const unsigned = await failsWith({ own: reply => reply.end(ended('MISSING_THOUGHT_SIGNATURE')) })
    expect(unsigned.details).to.deep.equal({ kind: 'bad_request', retryable: false })
  })

  it('takes a stream that is cut, or ends without its end, for a broken network', async () => {
    for (const end of [(reply: { end(): void }) => reply.end(), (reply: { cut(): void }) => reply.cut()]) {
      const { details } = await failsWith({
        async own(reply) {
          await reply.write(texts('Hi'))
          end(reply)
        },
      })
      expect(details).to.deep.equal({ kind: 'network', retryable: true })
    }
  })

  for (const data of ['{"candidates":[{"cont', 'hello'])
    it(`takes the frame ${data} for a broken network`, async () => {
      expect((await failsWith({ own: reply => reply.end(`${texts('Hi')}data: ${data}\n\n`) })).details).to.include({
        kind: 'network',
      })
    })

  it('hides the key in an error inside a stream', async () => {
    const { message } = await failsWith({
      own: reply => reply.end(frame({ error: { message: `bad ${KEY}`, status: 'INTERNAL' } })),
    })
    expect(message).to.include('bad').and.not.include(KEY)
  })

  it('follows no redirect', async () => {
    await using elsewhere = await openGeminiApi()
    const error = await failsWith({ own: reply => reply.redirect(307, `${elsewhere.url}/v1beta/models`) })
    expect(error.details).to.include({ kind: 'bad_request', upstreamStatus: 307 })
    expect(elsewhere.received).to.have.lengthOf(0)
  })
})
