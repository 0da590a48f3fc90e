import { expect } from 'chai'
import { V4, V4_ANTHROPIC, V4_RESPONSES } from './support/dialects.ts'
import { openScripted } from './support/modules.ts'
import { ask, behaving, CANARY, failureOf, openRig, says, textOf } from './support/rig.ts'

const GATHERED = says('plain', { gathered: true })
const USAGE = { inputTokens: { total: 3 }, outputTokens: { total: 2 } }

describe('an answer of provider-ai-sdk that is not streamed', () => {
  for (const dialect of [V4, V4_RESPONSES, V4_ANTHROPIC])
    it(`is asked for as one JSON, and ends with the same data, through ${dialect.title}`, async () => {
      await using rig = await openRig(dialect, behaving(dialect.wire))
      const whole = await ask(rig.provider, GATHERED)
      expect((rig.upstream.received[0]?.body as { stream?: boolean } | undefined)?.stream ?? false).to.equal(false)
      expect(whole.map(event => event.type)).to.deep.equal(['text', 'usage', 'finish'])
      expect(whole.at(-1)).to.deep.equal((await ask(rig.provider, says('plain'))).at(-1))
    })

  it('has all that the package tells in its order, with its data, and none of what has no place', async () => {
    const call = { type: 'tool-call', toolCallId: 'a', toolName: 'weather', input: '{"city": "Ulm"}' }
    const content = [
      { type: 'reasoning', text: 'Hm', providerMetadata: { p: { signature: 's' } } },
      { type: 'source', sourceType: 'url', id: '1', url: 'https://example.org' },
      { type: 'text', text: 'Hi', providerMetadata: { p: { item: 1 } } },
      call,
      { ...call, toolCallId: 'b', input: '{"city": ' },
      { ...call, toolCallId: 'c', providerExecuted: true },
    ]
    const whole = { content, finishReason: { unified: 'tool-calls', raw: 'x' }, usage: USAGE, warnings: [] }
    await using rig = await openScripted({ whole })
    expect(await ask(rig.provider, GATHERED)).to.deep.equal([
      { type: 'reasoning', text: 'Hm' },
      { type: 'reasoning', text: '', providerData: { p: { signature: 's' } } },
      { type: 'citation', citation: { url: 'https://example.org' } },
      { type: 'text', text: 'Hi' },
      { type: 'tool_call', id: 'a', tool: 'weather', arguments: { city: 'Ulm' } },
      { type: 'tool_call', id: 'b', tool: 'weather', arguments: {}, invalid: '{"city": ' },
      { type: 'usage', usage: { input: 3, output: 2 } },
      { type: 'finish', reason: 'tool_calls', providerData: { texts: [{ p: { item: 1 } }] } },
    ])
  })

  it('comes as a stream from a package that knows nothing else', async () => {
    const finish = { type: 'finish', finishReason: 'stop', usage: USAGE }
    await using rig = await openScripted({ parts: [{ type: 'text-delta', id: '1', delta: 'Hi' }, finish] })
    expect(textOf(await ask(rig.provider, GATHERED))).to.equal('Hi')
  })

  for (const dialect of [V4, V4_RESPONSES, V4_ANTHROPIC])
    it(`fails with what an error inside it says, without the key, through ${dialect.title}`, async () => {
      const error = { type: 'overloaded_error', code: 'overloaded', message: `no room for ${CANARY}`, param: null }
      await using rig = await openRig(dialect, (_, reply) => reply.json(200, { type: 'error', error }))
      const failed = await failureOf(ask(rig.provider, GATHERED))
      expect(failed.details).to.include({ kind: 'overloaded', retryable: true })
      expect(failed.message).to.include('no room for [secret]').and.not.include(CANARY)
    })
})
