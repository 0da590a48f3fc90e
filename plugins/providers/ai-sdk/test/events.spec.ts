import { setImmediate, setTimeout as wait } from 'node:timers/promises'
import type { ModelEvent } from '@svc/core/contracts'
import { expect } from 'chai'
import { DIALECTS } from './support/dialects.ts'
import { openScripted } from './support/modules.ts'
import { ask, CANARY, endlessContext, failureOf, openRig, says, textOf } from './support/rig.ts'
import { playing, type Script } from './support/scripted.ts'

const stop = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } }
const text = (delta: string) => ({ type: 'text-delta', id: '1', delta })

async function played(script: Script): Promise<ModelEvent[]> {
  await using rig = await openScripted(script)
  return await ask(rig.provider, says('any'))
}
const failed = async (script: Script) => {
  await using rig = await openScripted(script)
  return await failureOf(ask(rig.provider, says('any')))
}
const usageOf = async (version: string, usage: unknown, finishReason: unknown) =>
  (await played({ version, parts: [{ type: 'finish', finishReason, usage }] })).find(event => event.type === 'usage')

describe('the events of provider-ai-sdk', () => {
  it('count tokens in the form of each version', async () => {
    const usage = { input: 10, output: 4, cached: 6, reasoning: 3 }
    const flat = { inputTokens: 10, outputTokens: 4, totalTokens: 14, cachedInputTokens: 6, reasoningTokens: 3 }
    expect(await usageOf('v2', flat, 'stop')).to.deep.equal({ type: 'usage', usage })
    const nested = { inputTokens: { total: 10, cacheRead: 6 }, outputTokens: { total: 4, reasoning: 3 } }
    for (const version of ['v3', 'v4'])
      expect(await usageOf(version, nested, stop.finishReason)).to.deep.equal({ type: 'usage', usage })
  })

  it('count nothing that makes no sense: a part is never more than the whole', async () => {
    const odd = { inputTokens: { total: 5, cacheRead: 9 }, outputTokens: { total: -1, reasoning: 'many' } }
    expect(await usageOf('v4', odd, stop.finishReason)).to.deep.equal({
      type: 'usage',
      usage: { input: 5, output: 0, cached: 5 },
    })
    expect(await usageOf('v2', { inputTokens: undefined }, 'stop')).to.equal(undefined)
    expect(await usageOf('v4', undefined, stop.finishReason)).to.equal(undefined)
  })

  it('tell reasoning block by block, each with its data at its end, also where blocks lie in each other', async () => {
    const about = (id: string, more: object) => ({ id, ...more })
    const events = await played({
      parts: [
        about('a', { type: 'reasoning-start', providerMetadata: { p: { item: 1, secret: null } } }),
        about('a', { type: 'reasoning-delta', delta: 'first ' }),
        about('b', { type: 'reasoning-start' }),
        about('b', { type: 'reasoning-delta', delta: 'other' }),
        about('a', { type: 'reasoning-delta', delta: 'more', providerMetadata: { p: { signature: 's' } } }),
        about('b', { type: 'reasoning-end', providerMetadata: { p: { item: 2 } } }),
        about('a', { type: 'reasoning-end' }),
        text('so'),
        stop,
      ],
    })
    expect(events).to.deep.equal([
      { type: 'reasoning', text: 'first ' },
      { type: 'reasoning', text: 'more' },
      { type: 'reasoning', text: '', providerData: { p: { item: 1, secret: null, signature: 's' } } },
      { type: 'reasoning', text: 'other' },
      { type: 'reasoning', text: '', providerData: { p: { item: 2 } } },
      { type: 'text', text: 'so' },
      { type: 'finish', reason: 'stop' },
    ])
  })

  it('have tool calls in the order in which they began, with their data, and none that the provider runs itself', async () => {
    const begin = (id: string, more: object = {}) => ({ type: 'tool-input-start', id, toolName: 'weather', ...more })
    const whole = (id: string, more: object = {}) => ({
      type: 'tool-call',
      toolCallId: id,
      toolName: 'weather',
      input: '{"n":1}',
      ...more,
    })
    const events = await played({
      parts: [
        begin('own', { providerExecuted: true }),
        begin('a'),
        begin('b'),
        whole('b', { providerMetadata: { p: { item: 2 } } }),
        whole('own', { providerExecuted: true }),
        { type: 'tool-result', toolCallId: 'own', toolName: 'weather', result: {} },
        whole('a'),
        { ...stop, finishReason: { unified: 'tool-calls', raw: 'tool_calls' } },
      ],
    })
    const call = { type: 'tool_call', tool: 'weather', arguments: { n: 1 } }
    expect(events).to.deep.equal([
      { ...call, id: 'a' },
      { ...call, id: 'b', providerData: { p: { item: 2 } } },
      { type: 'finish', reason: 'tool_calls' },
    ])
  })

  it('tell a call that a package keeps silent about, because its arguments are no JSON', async () => {
    const parts = [
      { type: 'tool-input-start', id: 'a', toolName: 'weather' },
      { type: 'tool-input-delta', id: 'a', delta: '{"city": ' },
      { type: 'finish', finishReason: 'tool-calls', usage: {} },
    ]
    const [alive, call, end] = await played({ version: 'v2', parts })
    expect(alive, 'a sign of life').to.deep.equal({ type: 'reasoning', text: '' })
    expect(call).to.deep.equal({ type: 'tool_call', id: 'a', tool: 'weather', arguments: {}, invalid: '{"city": ' })
    expect(end).to.deep.equal({ type: 'finish', reason: 'tool_calls' })
    const cut = await played({
      version: 'v2',
      parts: [...parts.slice(0, 2), { type: 'finish', finishReason: 'length', usage: {} }],
    })
    expect(cut.slice(1), 'what the limit cut off is no call').to.deep.equal([{ type: 'finish', reason: 'length' }])
  })

  it('pass over what has no place in an answer', async () => {
    const strange = ['source', 'file', 'raw', 'ping', 'custom', 'response-metadata', 'constructor', '__proto__', 'finished']
    const events = await played({ parts: [...strange.map(type => ({ type })), text(''), text('x'), stop, text('late')] })
    expect(events).to.deep.equal([
      { type: 'text', text: 'x' },
      { type: 'finish', reason: 'stop' },
    ])
  })

  for (const [what, version, end] of [
    ['nothing', 'v4', []],
    ['no reason', 'v2', [{ ...stop, finishReason: 'unknown' }]],
    ['no reason', 'v3', [{ ...stop, finishReason: { unified: 'other', raw: undefined } }]],
    ['the reason interrupted', 'v4', [{ ...stop, finishReason: { unified: 'interrupted', raw: undefined } }]],
    ['the reason error', 'v2', [{ ...stop, finishReason: 'error' }]],
  ] as const)
    it(`fail as cut when an answer of version ${version} ends with ${what}`, async () => {
      const error = await failed({ version, parts: [text('half'), ...end] })
      expect(error.details).to.include({ kind: 'network', retryable: true })
    })

  for (const { title, entry, wire } of DIALECTS) {
    it(`fail where a frame cannot be read, through ${title}`, async () => {
      for (const frame of ['data: {"broken\n\n', 'data: {"type": 7, "choices": "none"}\n\n']) {
        await using rig = await openRig({ entry }, async (_, reply) => {
          await reply.write(wire.begin() + wire.text('Hello'))
          await reply.write(frame)
          await reply.silence()
        })
        const events: ModelEvent[] = []
        const reading = async () => {
          for await (const event of rig.provider.chat(says('any'), endlessContext())) events.push(event)
        }
        const error = await failureOf(reading())
        expect(error.details).to.include({ kind: 'network', retryable: true })
        expect(textOf(events)).to.equal('Hello')
      }
    })

    it(`fail with what an error inside the stream says, without the key, through ${title}`, async () => {
      for (const before of [wire.begin() + wire.text('Hello'), '']) {
        await using rig = await openRig({ entry }, (_, reply) => reply.end(before + wire.error(`no room for ${CANARY}`)))
        const error = await failureOf(ask(rig.provider, says('any')))
        expect(error.details).to.include({ kind: 'overloaded', retryable: true })
        expect(error.message).to.include('no room for [secret]').and.not.include(CANARY)
      }
    })
  }

  it('come no faster than they are taken', async () => {
    await using rig = await openScripted({ deaf: true })
    const iterator = rig.provider.chat(says('any'), endlessContext())[Symbol.asyncIterator]()
    await iterator.next()
    const before = playing.parts
    for (let turns = 0; turns < 2000; turns++) await setImmediate()
    expect(playing.parts - before).to.be.below(500)
    for (let times = 0; times < 500; times++) expect((await iterator.next()).done).to.equal(false)
    await iterator.return?.()
  })

  it('end when they are aborted, though the package heeds no signal', async () => {
    await using rig = await openScripted({ deaf: true })
    const controller = new AbortController()
    const reason = new Error('enough')
    const error = await failureOf(
      (async () => {
        for await (const event of rig.provider.chat(says('any'), { ...endlessContext(), signal: controller.signal }))
          if (event.type === 'text') {
            expect(playing.streams).to.equal(1)
            controller.abort(reason)
          }
      })()
    )
    expect(error.message).to.equal('enough')
    while (playing.streams > 0) await wait(5)
  })
})
