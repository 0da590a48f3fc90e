import type { JsonSchema } from '@svc/core'
import { Conversations, Providers, Tools } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, codeThrown, says, scripted, textOf, tool } from './chat-host.ts'

const SIZE: JsonSchema = {
  type: 'object',
  properties: { size: { type: 'integer' }, unit: { type: 'string', default: 'cm' } },
  required: ['size'],
  additionalProperties: false,
}
const asked = { message: 'how tall?', provider: 'a', responseSchema: SIZE }
const chatHost = (a: ReturnType<typeof scripted>) =>
  startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({}))] })

describe('a turn that asks for data', () => {
  it('hands the schema to the provider, and answers the data with its defaults', async () => {
    const a = scripted([says('{"size": 7}')])
    await using host = await chatHost(a)
    expect(await host.chat.reply(asked, testContext())).to.deep.include({
      response: '{"size": 7}',
      data: { size: 7, unit: 'cm' },
    })
    expect(a.requests[0]?.responseSchema).to.deep.equal(SIZE)
  })

  it('is answered by the local provider with data that fits', async () => {
    await using found = await startChatHost()
    expect((await found.chat.reply({ ...asked, provider: 'local' }, testContext())).data)
      .to.have.property('size')
      .that.is.a('number')
  })

  it('takes JSON between the fences that models like', async () => {
    await using host = await chatHost(scripted([says('```json\n{"size": 7, "unit": "m"}\n```')]))
    expect((await host.chat.reply(asked, testContext())).data).to.deep.equal({ size: 7, unit: 'm' })
  })

  it('tells the model once what does not fit, and keeps neither that nor the answer', async () => {
    const a = scripted([says('{"size": "tall"}'), says('{"size": 8}')])
    await using host = await chatHost(a)
    const { data, usage, conversationId } = await host.chat.reply(asked, testContext())
    expect([data, usage.total]).to.deep.equal([{ size: 8, unit: 'cm' }, 10])
    const reported = a.requests[1]!.messages.slice(-2)
    expect(reported.map(({ role }) => role)).to.deep.equal(['assistant', 'user'])
    expect(JSON.stringify(reported)).to.match(/size must be integer/)
    const { messages } = await host.host.service(Conversations).get(conversationId, testContext())
    expect(messages.map(({ content }) => content)).to.deep.equal(['how tall?', '{"size": 8}'])
  })

  for (const [what, words, reason] of [
    ['no JSON', 'rather tall', 'it is not valid JSON'],
    ['JSON of another form', '{"size": 1.5}', 'size must be integer'],
  ] as const)
    it(`fails with ANSWER_INVALID where the second answer is ${what} too`, async () => {
      const a = scripted([says(words)])
      await using host = await chatHost(a)
      const { code, details } = await codeThrown(host.chat.reply(asked, testContext()))
      expect([code, details.provider, details.model]).to.deep.equal(['ANSWER_INVALID', 'a', 'm'])
      expect(details.reason).to.include(reason)
      expect(a.requests).to.have.lengthOf(2)
    })

  it('shows its text in one piece, once it fits; what failed is an event', async () => {
    await using host = await chatHost(scripted([says('no'), says('{"size": 9}'), says('no')]))
    const events = await host.stream(asked)
    expect(events.filter(({ type }) => type === 'token')).to.have.lengthOf(1)
    expect(textOf(events)).to.equal('{"size": 9}')
    expect(events.at(-1)).to.deep.include({ status: 'completed', data: { size: 9, unit: 'cm' } })
    const [failure, end] = (await host.stream(asked)).slice(-2)
    expect(failure).to.have.nested.property('error.code', 'ANSWER_INVALID')
    expect(end).to.include({ status: 'failed' }).and.not.have.property('data')
  })

  it('may use tools before it answers, and what it said meanwhile is no part of the data', async () => {
    const a = scripted([[{ type: 'text', text: 'let me see' }, ...calls(['t'])], says('no'), calls(['t']), says('{"size": 9}')])
    await using host = await chatHost(a)
    const { data, toolsUsed, response } = await host.chat.reply({ ...asked, tools: ['t'] }, testContext())
    expect([data, toolsUsed.length, response]).to.deep.equal([{ size: 9, unit: 'cm' }, 2, '{"size": 9}'])
    expect(a.requests[3]!.messages.map(({ role }) => role).slice(-7)).to.deep.equal(
      ['user', 'assistant', 'tool', 'assistant', 'user', 'assistant', 'tool'] // the last two of the second round of tools
    )
  })

  it('is refused where its schema is none', async () => {
    await using host = await chatHost(scripted([says('{}')]))
    const { code, details } = await codeThrown(host.chat.reply({ ...asked, responseSchema: { type: 'colour' } }, testContext()))
    expect([code, details.field]).to.deep.equal(['INVALID_VALUE', 'response_schema'])
  })
})
