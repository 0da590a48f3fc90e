import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Answer, createClient } from '../support/client.ts'
import { runSvc } from '../support/command.ts'
import { newHome, type Service, startService } from '../support/service.ts'

const CHAT = '/api/v1/chat'
const PNG = Buffer.from('\x89PNG\r\n\x1a\n and more', 'latin1').toString('base64')
const SCHEMA = { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'], additionalProperties: false }

interface Reply {
  readonly response: string
  readonly data?: unknown
  readonly conversation_id: string
  readonly tools_used: readonly { readonly tool: string; readonly success: boolean }[]
}
const codeOf = ({ body }: Answer) => (body as { error_code?: string }).error_code
const fieldOf = ({ body }: Answer) => (body as { details?: { field?: string } }).details?.field

describe('the body of a chat request', () => {
  let service: Service
  let admin: Record<string, string>
  let chatter: Record<string, string>
  before(async () => {
    const home = await newHome()
    const token = async (name: string, scope: string) => ({
      authorization: `Bearer ${(await runSvc(['tokens', 'create', '--name', name, '--scope', scope], { home })).out.trim()}`,
    })
    admin = await token('root', 'chat,admin')
    chatter = await token('anna', 'chat')
    await writeFile(join(home, 'profiles.yaml'), 'profiles: { default: { mode: plan }, short: { max_tokens: 3 } }\n')
    service = await startService({ home, env: { SVC_API_KEY: 'the-key', SVC_SERVER__AUTH__ENABLED: 'true' } })
  })
  after(() => service?.[Symbol.asyncDispose]())

  const ask = (body: object, headers = chatter, path = CHAT) =>
    createClient(service.url, { keepAlive: false }).send({
      method: 'POST',
      path,
      headers,
      body: { message: 'hello there you', ...body },
    })
  const reply = async (body: object, headers = chatter) => {
    const answer = await ask(body, headers)
    expect(answer.status, answer.text).to.equal(200)
    return answer.body as Reply
  }

  it('takes a profile, a system prompt and budgets for one turn', async () => {
    expect((await reply({ profile: 'short' })).response.length).to.be.lessThan((await reply({})).response.length)
    expect((await reply({ system: 'Be kind.' })).response).to.contain('hello')
    const call = '/tool calculate {"expression": "1 + 1"}\n'
    const twice = (await reply({ message: call + call, tools: ['calculate'] })).tools_used
    expect(twice.filter(({ success }) => success)).to.have.length(2)
    const once = (await reply({ message: call + call, tools: ['calculate'], tool_budget: 1 })).tools_used
    expect(once.filter(({ success }) => success)).to.have.length(1)
    const poor = await ask({ token_budget: 1 })
    expect([poor.status, codeOf(poor), fieldOf(poor)], poor.text).to.deep.equal([400, 'INVALID_VALUE', 'token_budget'])
    for (const body of [{ profile: 'absent' }, { tool_budget: -1 }, { token_budget: 'many' }, { system: 5 }, { profile: '' }]) {
      const answer = await ask(body)
      expect([answer.status, codeOf(answer)], JSON.stringify(body)).to.deep.equal([400, 'INVALID_VALUE'])
      expect(fieldOf(answer)).to.equal(Object.keys(body)[0])
    }
  })

  it('lists the fields that it ignores in a header, with the nearest name', async () => {
    for (const path of [CHAT, `${CHAT}/stream`]) {
      const answer = await ask({ temprature: 0.1, 'x\r\ny': 1, zzz: null, profile: 'short' }, chatter, path)
      expect(answer.status, answer.text).to.equal(200)
      expect(answer.headers['x-ignored-fields']).to.equal('temprature;nearest=temperature, x%0D%0Ay, zzz')
    }
    const many = await ask(Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`${at}-${'ä'.repeat(300)}`, 1])))
    expect(String(many.headers['x-ignored-fields']).split(', ')).to.have.length(20)
    expect((await ask({})).headers['x-ignored-fields']).to.equal(undefined)
  })

  it('takes a mode that allows no more than that of the server; others only from an administrator', async () => {
    expect((await reply({ mode: 'review' })).response).to.contain('hello')
    for (const path of [CHAT, `${CHAT}/stream`]) {
      const refused = await ask({ mode: 'build' }, chatter, path)
      expect([refused.status, codeOf(refused), fieldOf(refused)], path).to.deep.equal([403, 'FORBIDDEN', 'mode'])
      expect((await ask({ mode: 'build' }, admin, path)).status).to.equal(200)
      const unknown = await ask({ mode: 'absent' }, chatter, path)
      expect([unknown.status, fieldOf(unknown)]).to.deep.equal([400, 'mode'])
    }
  })

  it('takes a schema of the reply, and gives the reply as data too, streamed or not', async () => {
    const { response, data } = await reply({ response_schema: SCHEMA })
    expect(JSON.parse(response)).to.deep.equal(data)
    expect(data).to.have.property('answer').that.is.a('number')
    const streamed = await ask({ response_schema: SCHEMA }, chatter, `${CHAT}/stream`)
    expect(streamed.events.at(-1)!.data).to.deep.include({ type: 'end', status: 'completed', data })
    const impossible = await ask({ response_schema: { type: 'string', minLength: 5, maxLength: 2 } })
    expect([impossible.status, codeOf(impossible)], impossible.text).to.deep.equal([503, 'PROVIDER_ERROR'])
    for (const schema of [{ type: 'strange' }, { $ref: 'https://a.example/schema' }, 'x', null]) {
      const answer = await ask({ response_schema: schema })
      expect([answer.status, fieldOf(answer)], JSON.stringify(schema)).to.deep.equal([400, 'response_schema'])
    }
  })

  it('says in plain words why a schema of the reply is not valid', async () => {
    const words = {
      'response_schema is not a valid JSON Schema: "strange" is not a type; use string, number,': { type: 'strange' },
      'response_schema is not a valid JSON Schema: required must be array': { type: 'object', required: 'a' },
      'response_schema is not a valid JSON Schema: the $ref "#/nope" names no schema': { $ref: '#/nope' },
    }
    for (const [expected, schema] of Object.entries(words)) {
      const { error } = (await ask({ response_schema: schema })).body as { error: string }
      expect(error).to.include(expected)
    }
  })

  it('takes images and files that are what they say, up to 32 MiB in all', async () => {
    const image = { type: 'image', media_type: 'image/png', data: PNG }
    const file = { type: 'file', media_type: 'application/pdf', data: Buffer.from('%PDF-1.7').toString('base64'), name: 'a.pdf' }
    expect((await reply({ parts: [image, file] })).response).to.contain('hello')
    for (const [part, field] of [
      [{ ...image, data: 'bm8gaW1hZ2U=' }, 'parts[0].data'],
      [{ ...image, data: '!!' }, 'parts[0].data'],
      [{ ...image, media_type: 'image/svg+xml' }, 'parts[0].media_type'],
      [{ ...image, type: 'video' }, 'parts[0].type'],
      [{ type: 'image', media_type: 'image/png' }, 'parts[0].data'],
    ] as const) {
      const answer = await ask({ parts: [part] })
      expect(answer.status, answer.text).to.equal(400)
      expect(answer.text).to.contain(field)
    }
    expect((await ask({ parts: Array.from({ length: 33 }, () => image) })).status).to.equal(400)
    const withBytes = (count: number) => Buffer.concat([Buffer.from(PNG, 'base64'), Buffer.alloc(count)]).toString('base64')
    const held = await ask({ parts: [{ ...image, data: withBytes(8 * 1024 * 1024) }] })
    expect(held.status, held.text.slice(0, 300)).to.equal(200)
    const full = await ask({ parts: [image, { ...image, data: withBytes(18 * 1024 * 1024) }] })
    expect([full.status, codeOf(full), fieldOf(full)]).to.deep.equal([400, 'INVALID_VALUE', 'parts'])
    // a body of 30 MiB is read whole; what cannot be stored is refused
    const vast = await ask({ parts: [{ ...image, data: withBytes(22.4 * 1024 * 1024) }] })
    expect([vast.status, codeOf(vast), fieldOf(vast)]).to.deep.equal([400, 'INVALID_VALUE', 'parts'])
    const again = await ask({
      conversation_id: (held.body as Reply).conversation_id,
      parts: [{ ...image, data: withBytes(8 * 1024 * 1024) }],
    })
    expect(again.status, again.text.slice(0, 300)).to.equal(200)
    const third = await ask({ conversation_id: (held.body as Reply).conversation_id })
    expect([third.status, codeOf(third), fieldOf(third)]).to.deep.equal([400, 'INVALID_VALUE', 'conversation_id'])
    const over = await ask({ parts: [{ ...image, data: PNG + 'A'.repeat(33 * 1024 * 1024) }] })
    expect([over.status, codeOf(over)]).to.deep.equal([413, 'PAYLOAD_TOO_LARGE'])
  })
})
