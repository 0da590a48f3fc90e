import { definePlugin, type PluginRef, svcError } from '@svc/core'
import { ModelCalls, type ContentPart, type ModelMessage, Providers, Tools } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, says, scripted, tool } from './chat-host.ts'

const text = (words: string): ContentPart => ({ type: 'text', text: words })
const IMAGE: ContentPart = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
const SEEING = { features: { tool_calling: true, streaming: true, vision: true } }
const answering = (...content: readonly unknown[]) => item(Tools, 't', tool({ call: async () => ({ content }) as never }))

/** What the model is told of a tool that answers this. */
async function toPublicError(content: readonly unknown[], tool_result_limit: number): Promise<readonly ContentPart[]> {
  const a = scripted([calls(['t']), says('so')], [{ id: 'm' }], SEEING)
  const config = { chat: { tool_result_limit } }
  await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), answering(...content)], config })
  await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
  return resultsIn(a.requests[1]!.messages)[0]!
}

const resultsIn = (messages: readonly ModelMessage[]) =>
  messages.flatMap(({ parts }) => parts.flatMap(part => (part.type === 'tool_result' ? [part.content] : [])))

describe('what a tool answers beside texts', () => {
  const LIMIT = 100_000
  const LONG = 'x'.repeat(3_000_000)

  for (const [form, part, reported] of [
    ['the text of a resource', { type: 'resource', resource: { uri: 'a:b', text: LONG } }, /^x{100000}\n\[cut: 2900000 /],
    ['data of a resource', { type: 'resource', resource: { uri: 'a:b', blob: LONG } }, /^\[resource left out: too large\]$/],
    ['the address of a link', { type: 'resource_link', uri: LONG, name: 'a' }, /^\[resource_link left out: too large\]$/],
    ['the name of a link', { type: 'resource_link', uri: 'a:b', name: LONG }, /^\[resource_link left out: too large\]$/],
    ['a form nobody knows', { type: 'other', words: LONG }, /^\[other left out: too large\]$/],
    ['the media type of an image', { ...IMAGE, mimeType: LONG }, /^\[image left out: too large\]$/],
    ['the media type of a sound', { ...IMAGE, type: 'audio', mimeType: [LONG] }, /^\[audio left out: too large\]$/],
  ] as const)
    it(`counts as text where providers tell it in words: ${form}`, async () => {
      const [only, ...more] = await toPublicError([part], LIMIT)
      expect(only?.type === 'text' && only.text).to.match(reported)
      expect(more).to.deep.equal([])
    })

  it('counts together with the texts, as it is sent', async () => {
    const link = { type: 'resource_link', uri: 'a:b', name: 'n' }
    const resource = { type: 'resource', resource: { uri: 'a:b', text: 'some' } }
    expect(await toPublicError([text('a'.repeat(30)), link, resource, IMAGE, text('end')], 200)).to.deep.equal([
      text('a'.repeat(30)),
      link,
      resource,
      IMAGE,
      text('end'),
    ])
    expect(await toPublicError([text('a'.repeat(160)), link, resource, IMAGE], 200)).to.deep.equal([
      text('a'.repeat(160)),
      text('[resource_link left out: too large]'),
      text('some'),
      IMAGE,
    ])
    // as JSON each of these lines would be twice as long
    const lines = { type: 'resource', resource: { text: '\n'.repeat(90) } }
    expect(await toPublicError([lines, text('b'.repeat(20))], 100)).to.deep.equal([
      text('\n'.repeat(90)),
      text(`${'b'.repeat(10)}\n[cut: 10 characters more]`),
    ])
  })

  it('is no text where it is an image of a megabyte', async () => {
    const image = { ...IMAGE, data: 'A'.repeat(1_000_000) }
    expect(await toPublicError([image], 100)).to.deep.equal([image])
  })
})

describe('an image that a tool answers', () => {
  const UNSEEN = text('[an image was left out: the model cannot see images]')
  const [seen, unseen] = [[[text('look'), IMAGE]], [[text('look'), UNSEEN]]]

  it('is given to a model that sees, now and later, and described in words to another', async () => {
    for (const [more, reported] of [
      [SEEING, seen],
      [{}, unseen],
    ] as const) {
      const a = scripted([calls(['t']), says('so')], [{ id: 'm' }], more)
      await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), answering(text('look'), IMAGE)] })
      const { conversationId } = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
      await chatHost.chat.reply({ message: 'and?', provider: 'a', conversationId }, testContext())
      expect(a.requests.slice(1).map(({ messages }) => resultsIn(messages))).to.deep.equal([reported, reported])
    }
  })

  it('is seen by a model that can what its provider cannot, and the other way round', async () => {
    for (const [more, vision, reported] of [
      [SEEING, false, unseen],
      [{}, true, seen],
    ] as const) {
      const a = scripted([calls(['t']), says('so')], [{ id: 'm', features: { vision } }], more)
      await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), answering(text('look'), IMAGE)] })
      await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
      expect(resultsIn(a.requests[1]!.messages)).to.deep.equal(reported)
    }
  })

  it('is kept for a model that sees and answers in the stead of one that does not', async () => {
    const fails = () => {
      throw svcError('MODEL_FAILED', 'no', { details: { kind: 'overloaded', retryable: true } })
    }
    const [blind, sees] = [scripted([calls(['t']), fails]), scripted([says('b')], [{ id: 'm' }], SEEING)]
    const use = definePlugin({
      setup: scope => void scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'b', model: 'm' })),
    })
    const tap: PluginRef = { name: 'tapping', use }
    const give = [tap, item(Providers, 'a', blind), item(Providers, 'b', sees), answering(text('look'), IMAGE)]
    await using chatHost = await startChatHost({ give })
    await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    expect(resultsIn(blind.requests[1]!.messages)).to.deep.equal(unseen)
    expect(resultsIn(sees.requests[0]!.messages)).to.deep.equal(seen)
  })

  it('is described in words as well to a model that calls no tools', async () => {
    const a = scripted([calls(['t']), says('so')])
    const plain = scripted([says('b')], [{ id: 'm', features: { tool_calling: false } }])
    const give = [item(Providers, 'a', a), item(Providers, 'b', plain), answering(text('look'), IMAGE)]
    await using chatHost = await startChatHost({ give })
    const { conversationId } = await chatHost.chat.reply({ message: 'hi', provider: 'a' }, testContext())
    await chatHost.chat.reply({ message: 'and?', provider: 'b', conversationId }, testContext())
    expect(JSON.stringify(plain.requests[0]!.messages)).to.include('[t answered]\\nlook\\n[an image was left out')
  })
})
