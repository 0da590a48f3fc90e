import { ask, failureOf } from '@svc/testing'
import { expect } from 'chai'
import { ended, openGeminiApi, texts } from './support/gemini-api.ts'
import { offered, openGoogle, to } from './support/google.ts'
import { response } from './support/whole.ts'

const GATHERED = to('own', { gathered: true, tools: offered })
const reads = async (body: unknown) => {
  await using upstream = await openGeminiApi({ own: reply => reply.json(200, body) })
  await using opened = await openGoogle(upstream.url)
  return await ask(opened.provider, GATHERED)
}
const USAGE = { type: 'usage', usage: { input: 5, output: 4 } }

describe('an answer of provider-google that is not streamed', () => {
  it('is asked for as one JSON', async () => {
    await using upstream = await openGeminiApi()
    await using opened = await openGoogle(upstream.url)
    await ask(opened.provider, to('plain', { gathered: true }))
    expect(upstream.received[0]?.path).to.equal('/v1beta/models/plain:generateContent')
    expect(upstream.received[0]?.headers.accept).to.equal('application/json')
  })

  it('has all of its parts in order: thoughts, text, signatures, calls', async () => {
    const parts = [
      { text: 'Hm', thought: true, thoughtSignature: 's1' },
      { text: 'Hi', thoughtSignature: 's2' },
      { functionCall: { id: 'fc', name: 'weather', args: { city: 'Ulm' } }, thoughtSignature: 's3' },
      { functionCall: { name: 'weather', args: 'Bern' } },
    ]
    const events = await reads(response(parts, 'STOP'))
    const [first, second] = events.filter(event => event.type === 'tool_call')
    expect(events.filter(event => event.type !== 'tool_call')).to.deep.equal([
      { type: 'reasoning', text: 'Hm', providerData: { thoughtSignature: 's1', thought: true } },
      { type: 'text', text: 'Hi' },
      { type: 'reasoning', text: '', providerData: { thoughtSignature: 's2' } },
      USAGE,
      { type: 'finish', reason: 'tool_calls' },
    ])
    const providerData = { id: 'fc', thoughtSignature: 's3' }
    expect(first).to.deep.equal({ type: 'tool_call', id: 'fc', tool: 'weather', arguments: { city: 'Ulm' }, providerData })
    expect(second).to.include({ tool: 'weather', invalid: '"Bern"' })
    expect(second?.id).to.match(/^call_\w{24}$/)
  })

  it('may come as a stream all the same', async () => {
    await using upstream = await openGeminiApi({ own: reply => reply.end(texts('Hel', 'lo') + ended('STOP')) })
    await using opened = await openGoogle(upstream.url)
    const events = await ask(opened.provider, GATHERED)
    expect(events.slice(0, 2)).to.deep.equal(['Hel', 'lo'].map(text => ({ type: 'text', text })))
  })

  it('fails as refused where the messages were blocked, and as what an error in a list says', async () => {
    const blocked = await failureOf(reads({ promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'Not this.' } }))
    expect(blocked.details).to.include({ kind: 'content_refused' })
    expect(blocked.message).to.include('Not this.')
    const error = { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' }
    expect((await failureOf(reads([{ error }]))).details).to.include({ kind: 'overloaded' })
  })

  for (const [what, body] of [
    ['of no form', {}],
    ['a list', [response([{ text: 'Hi' }], 'STOP')]],
    ['with candidates that are no list', { ...response([], 'STOP'), candidates: {} }],
    ['without a candidate', { ...response([]), candidates: [] }],
    ['with a call that names no tool', response([{ functionCall: { args: {} } }], 'STOP')],
    ['without a reason', response([{ text: 'Hi' }])],
  ] as const)
    it(`fails as network where the JSON is ${what}`, async () => {
      expect((await failureOf(reads(body))).details).to.deep.equal({ kind: 'network', retryable: true })
    })
})
