import { expect } from 'chai'
import { serveApi, user } from './support/api.ts'

describe('POST /v1/messages', () => {
  it('answers with a message', async () => {
    await using api = await serveApi()
    const { status, body, headers } = await api.ask({ messages: [user('hello')] })
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.deep.include({ type: 'message', role: 'assistant', model: 'local/local-1', stop_reason: 'end_turn' })
    expect(body.content).to.deep.equal([{ type: 'text', text: 'You said: hello' }])
    expect(headers.get('request-id')).to.be.a('string')
  })
  it('streams', async () => {
    await using api = await serveApi()
    const { status, body, events } = await api.stream({ messages: [user('hello')] })
    expect(status, JSON.stringify(body)).to.equal(200)
  })
})
