import { expect } from 'chai'
import { input, serveAgents, user } from './support/agent.ts'

const call = { id: 'c1', type: 'function', function: { name: 't', arguments: '{' } }
const assistant = { id: 'a1', role: 'assistant', toolCalls: [call] }
const media = (type: string, source: unknown) => user([{ type, source }])
const tool = (more: object = {}) => ({ name: 't', description: 'd', ...more })

/** Input that is refused, by the field that the error names. */
const REFUSED: readonly (readonly [field: string, body: unknown])[] = [
  ['threadId', input({ threadId: 7, messages: [user('hi')] })],
  ['threadId', input({ threadId: '', messages: [user('hi')] })],
  ['runId', input({ runId: 'x'.repeat(1_001), messages: [user('hi')] })],
  ['messages', input({ messages: 'hi' })],
  ['messages', input({ messages: [] })],
  ['messages', input({ messages: [{ id: 'm', role: 'activity', activityType: 'x', content: {} }] })],
  ['messages[0]', input({ messages: ['hi'] })],
  ['messages[0].role', input({ messages: [{ role: 'assassin', content: 'x' }] })],
  ['messages[0].role', input({ messages: [{ role: 'constructor', content: 'x' }] })],
  ['messages[0].content', input({ messages: [user(7)] })],
  ['messages[0].content', input({ messages: [{ role: 'system', content: null }] })],
  ['messages[0].content[0]', input({ messages: [user(['hi'])] })],
  ['messages[0].content[0].type', input({ messages: [user([{ type: 'video', source: {} }])] })],
  ['messages[0].content[0].text', input({ messages: [user([{ type: 'text', text: {} }])] })],
  ['messages[0].content[0].source', input({ messages: [media('image', 'x')] })],
  ['messages[0].content[0].source.value', input({ messages: [media('image', { type: 'data', value: 'not base64!' })] })],
  ['messages[0].content[0].source.mimeType', input({ messages: [media('audio', { type: 'data', value: 'AAAA' })] })],
  ['messages[0].content[0].source.type', input({ messages: [media('image', { type: 'url', value: 'file:///etc/passwd' })] })],
  ['messages[0].content[0].source.type', input({ messages: [media('document', { type: 'url', value: 'https://a.example/' })] })],
  ['messages[0].content[0].source.type', input({ messages: [media('image', { type: 'file', value: 'f' })] })],
  ['messages[0].toolCalls', input({ messages: [{ role: 'assistant', toolCalls: 'x' }] })],
  ['messages[0].toolCalls[0].function', input({ messages: [{ role: 'assistant', toolCalls: [{ id: 'c' }] }] })],
  ['messages[0].toolCallId', input({ messages: [{ role: 'tool', toolCallId: 'c9', content: 'x' }] })],
  ['messages[1].toolCallId', input({ messages: [assistant, { role: 'tool', toolCallId: 'c2', content: 'x' }] })],
  ['messages[1].content', input({ messages: [assistant, { role: 'tool', toolCallId: 'c1', content: 5 }] })],
  ['tools', input({ messages: [user('hi')], tools: {} })],
  ['tools', input({ messages: [user('hi')], tools: [tool(), tool()] })],
  ['tools', input({ messages: [user('hi')], tools: Array.from({ length: 1_025 }, (_, at) => tool({ name: `t${at}` })) })],
  ['tools[0].name', input({ messages: [user('hi')], tools: [tool({ name: '' })] })],
  ['tools[0].parameters', input({ messages: [user('hi')], tools: [tool({ parameters: [] })] })],
  ['context[0]', input({ messages: [user('hi')], context: ['x'] })],
  ['context[0].value', input({ messages: [user('hi')], context: [{ description: 'd', value: 1 }] })],
  ['resume', input({ messages: [user('hi')], resume: [{ interruptId: 'i', status: 'resolved' }] })],
]

describe('bad input for AG-UI', () => {
  it('is an error record that names the field', async () => {
    await using server = await serveAgents()
    for (const [field, body] of REFUSED) {
      const answer = await server.post(body)
      const record = (await answer.json()) as { error_code: string; details: { field: string } }
      const what = JSON.stringify(body).slice(0, 300)
      expect([answer.status, record.error_code, record.details.field], what).to.deep.equal([400, 'INVALID_VALUE', field])
    }
  })

  it('is refused before it is read where it is no object, not JSON, or lacks a member', async () => {
    await using server = await serveAgents()
    for (const body of ['', 'x', '[]', '7', 'null', '{}', '{"threadId":"t","runId":"r"}'])
      expect((await server.post(body)).status, body).to.equal(400)
    expect((await server.post(input({ messages: [user('x'.repeat(33 * 1024 * 1024))] }))).status).to.equal(413)
    expect((await server.post(input({ messages: [user('hi')] }), 'a%2Fb')).status).to.equal(404)
    expect((await server.post(input({ messages: [user('hi')] }), '__proto__')).status).to.equal(404)
  })

  it('takes null for what is not set, unknown members, and arguments that are not JSON', async () => {
    await using server = await serveAgents()
    const unset = { tools: null, context: null, state: null, forwardedProps: null, resume: null, parentRunId: null, more: 1 }
    const answered = [assistant, { role: 'tool', toolCallId: 'c1', content: '', error: 'no such city' }]
    const thoughts = [
      { role: 'reasoning', content: 'hm' },
      { role: 'activity', activityType: 'x', content: {} },
    ]
    const answer = await server.post(input({ ...unset, messages: [user('hi'), ...thoughts, ...answered] }))
    expect(answer.status).to.equal(200)
    expect(await answer.text())
      .to.contain('"delta":" city"')
      .and.contain('RUN_FINISHED')
  })
})
