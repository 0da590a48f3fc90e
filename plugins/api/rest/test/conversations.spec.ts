import { expect } from 'chai'
import { svcError } from '@svc/core'
import type { Conversation, ConversationSummary } from '@svc/core/contracts'
import { serveRest } from './support/rest-server.ts'

const summary: ConversationSummary = {
  id: 'c1',
  owner: 'anonymous',
  version: 3,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-02T00:00:00.000Z',
  messageCount: 2,
}
const conversation: Conversation = {
  ...summary,
  messages: [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'hel', status: 'cancelled' },
  ],
}
const record = { conversation_id: 'c1', created_at: summary.createdAt, updated_at: summary.updatedAt, message_count: 2 }
const messages = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: 'hel', status: 'cancelled' },
]
const PATH = '/api/v1/conversations'

describe('conversations', () => {
  it('begin and go on with POST, which answers with all messages', async () => {
    await using served = await serveRest({ conversations: { get: async () => conversation } })
    const { status, body } = await served.call('POST', PATH, { message: 'hi', conversation_id: 'c1' })
    expect([status, body]).to.deep.equal([200, { conversation_id: 'c1', response: 'hello', messages }])
  })

  it('want a message', async () => {
    await using served = await serveRest()
    const { status, body } = await served.call('POST', PATH, { conversation_id: 'c1' })
    expect([status, body.error_code, body.details]).to.deep.equal([
      400,
      'MISSING_FIELD',
      { required_fields: ['message'], provided_fields: ['conversation_id'] },
    ])
  })

  it('are read with GET', async () => {
    await using served = await serveRest({ conversations: { get: async id => ({ ...conversation, id }) } })
    const { status, body } = await served.call('GET', `${PATH}/c%2F1`)
    expect([status, body]).to.deep.equal([200, { ...record, conversation_id: 'c/1', messages }])
  })

  it('are deleted with DELETE, which answers with nothing', async () => {
    const gone: string[] = []
    await using served = await serveRest({ conversations: { delete: async id => void gone.push(id) } })
    const { status, text, headers } = await served.call('DELETE', `${PATH}/c1`)
    expect([status, text, headers.get('content-length'), gone]).to.deep.equal([204, '', null, ['c1']])
  })

  it('that do not exist are 404', async () => {
    const unknown = async () => {
      throw svcError('CONVERSATION_UNKNOWN', 'unknown', { details: { conversationId: 'x' } })
    }
    await using served = await serveRest({ conversations: { get: unknown, delete: unknown }, chat: { reply: unknown } })
    const answers = [
      await served.call('GET', `${PATH}/x`),
      await served.call('DELETE', `${PATH}/x`),
      await served.call('POST', PATH, { message: 'hi', conversation_id: 'x' }),
    ]
    for (const { status, body } of answers) {
      expect([status, body.error_code]).to.deep.equal([404, 'INVALID_VALUE'])
      expect(body.details).to.deep.equal({ field: 'conversation_id', value: 'x', reason: 'not found' })
    }
  })

  it('are listed page by page', async () => {
    const asked: object[] = []
    const list = async (query: object) => (
      asked.push(query), asked.length === 1 ? { conversations: [summary], next: 'more' } : { conversations: [] }
    )
    await using served = await serveRest({ conversations: { list } })
    expect((await served.call('GET', PATH)).body).to.deep.equal({ conversations: [record], next_cursor: 'more' })
    expect((await served.call('GET', `${PATH}?limit=7&cursor=more`)).body).to.deep.equal({ conversations: [], next_cursor: null })
    expect(asked).to.deep.equal([{ limit: 50 }, { limit: 7, cursor: 'more' }])
  })

  for (const query of ['limit=0', 'limit=201', 'limit=x', 'limit=1.5', 'limit=-1', 'limit=', 'cursor='])
    it(`refuse the query ${query}`, async () => {
      await using served = await serveRest()
      const { status, body } = await served.call('GET', `${PATH}?${query}`)
      expect([status, body.error_code, (body.details as { field: string }).field]).to.deep.equal([
        400,
        'INVALID_VALUE',
        query.split('=')[0],
      ])
    })
})
