import { codeOf, type Principal } from '@svc/core'
import { Conversations, type StoredMessage, type TurnStep } from '@svc/core/contracts'
import { testContext, testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'

const startHost = (config = {}) =>
  testHost(['store-memory', 'conversations'].map(pluginFolder), { config: { conversations: config } })

const said = (role: 'user' | 'assistant', text: string): StoredMessage => ({ role, parts: [{ type: 'text', text }] })
const turn = (text: string) => [said('user', text), said('assistant', `re: ${text}`)]
const as = (id: string, ...scopes: string[]) => testContext({ principal: { id, scopes } satisfies Principal })
const [ANN, BEN, ADMIN] = [as('ann'), as('ben'), as('root', 'admin')]
const step = (message: number, input: number, output: number): TurnStep => ({
  message,
  provider: 'local',
  model: 'local-1',
  usage: { input, output },
})
/** A turn with a tool call; its first answer was rejected, so two steps belong to the last message. */
const ROUNDS: readonly StoredMessage[] = [
  said('user', 'What time is it?'),
  {
    role: 'assistant',
    parts: [
      { type: 'reasoning', text: 'I need a clock', providerData: { signature: 'opaque' } },
      { type: 'tool_call', id: 'c1', tool: 'current_time', arguments: { zone: 'UTC' } },
    ],
  },
  {
    role: 'tool',
    parts: [{ type: 'tool_result', id: 'c1', tool: 'current_time', content: [{ type: 'text', text: 'noon' }], isError: false }],
  },
  said('assistant', 'It is noon.'),
]

type Names = { title?: string; labels?: string[] }

async function write(service: Conversations, messages: readonly StoredMessage[], id?: string, ctx = ANN, names?: Names) {
  const wish = { ...(id === undefined ? {} : { conversationId: id }), ...(names && { newConversation: names }) }
  const open = await service.begin({ ...wish, waitMs: 1000, history: 10 }, ctx)
  await service.append(open.ticket, messages, [step(1, 10, 2), step(3, 5, 1), step(3, 7, 3)], ctx)
  await service.end(open.ticket, ctx)
  return open.conversationId
}

async function codeOfThrown(work: Promise<unknown>): Promise<string> {
  try {
    await work
  } catch (error) {
    const { field, reason } = (error as { details: { field?: string; reason?: string } }).details
    return [codeOf(error), field, reason === 'not found' ? reason : undefined].filter(Boolean).join(' ')
  }
  return 'nothing was thrown'
}
const textOf = async (service: Conversations, id: string, format: 'jsonl' | 'chat_completions' | 'markdown', ctx = ANN) =>
  (await Array.fromAsync(service.export(id, format, ctx))).join('')
/** The index is written after the turn. */
async function found(service: Conversations, q: string, ctx = ANN) {
  for (let left = 100; ; left--) {
    const { found: hits } = await service.search({ q, limit: 50 }, ctx)
    if (hits.length > 0 || left === 0) return hits
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

describe('titles and labels of conversations', () => {
  it('come from the caller, or the title from the first words of the first turn', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const given = await write(service, turn('hi'), undefined, ANN, { title: ' Greetings ', labels: ['b', 'a', 'b'] })
    const made = await write(service, turn(`One\n\ttwo \u0007three ${'word '.repeat(40)}`))
    const { conversations } = await service.list({ limit: 10 }, ANN)
    const names = new Map(conversations.map(({ id, title, labels }) => [id, { title, labels }]))
    expect(names.get(given)).to.deep.equal({ title: 'Greetings', labels: ['a', 'b'] })
    expect(names.get(made)?.title).to.match(/^One two three (word )+word…$/)
    expect(names.get(made)?.title).to.have.length.below(62)
    expect(names.get(made)?.labels).to.equal(undefined)
  })

  it('change while a turn runs, and the turn is stored too', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, turn('one'))
    const open = await service.begin({ conversationId: id, waitMs: 0, history: 1 }, ANN)
    await service.update(id, { title: 'New', labels: ['x'] }, ANN)
    await service.append(open.ticket, turn('two'), [], ANN)
    await service.end(open.ticket, ANN)
    expect(await service.get(id, ANN)).to.deep.include({ title: 'New', labels: ['x'], messageCount: 4 })
    expect((await service.update(id, { labels: [] }, ANN)).labels).to.equal(undefined)
  })

  for (const [what, names] of Object.entries({
    'a blank title': { title: ' \n' },
    'a title with control characters': { title: 'a\u001b[2Jb' },
    'a title that turns the text around': { title: 'a\u202eb' },
    'a lone surrogate': { title: 'a\ud800' },
    'a title that is too long': { title: 'x'.repeat(201) },
    'a megabyte as title': { title: 'x'.repeat(1_000_000) },
    '100,000 labels': { labels: Array.from({ length: 100_000 }, (_, at) => `l${at}`) },
    'a label with a comma': { labels: ['a,b'] },
    'a label with a line break': { labels: ['a\nb'] },
    'a label that is too long': { labels: ['x'.repeat(65)] },
  } satisfies Record<string, Names>))
    it(`refuse ${what}`, async () => {
      await using host = await startHost()
      const service = host.service(Conversations)
      const expected = `INVALID_VALUE ${Object.keys(names)[0]}`
      const id = await write(service, turn('one'))
      expect(await codeOfThrown(service.update(id, names, ANN))).to.equal(expected)
      expect(await codeOfThrown(service.fork(id, names, ANN))).to.equal(expected)
      expect(await codeOfThrown(service.begin({ newConversation: names, waitMs: 0, history: 0 }, ANN))).to.equal(expected)
    })

  it('select conversations, page by page', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    for (let at = 0; at < 30; at++)
      await write(service, turn(`${at}`), undefined, ANN, { labels: at % 3 === 0 ? ['third'] : ['other'] })
    const seen: string[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await service.list({ limit: 4, label: 'third', ...(cursor === undefined ? {} : { cursor }) }, ANN)
      expect(page.conversations.length).to.be.at.most(4)
      seen.push(...page.conversations.map(({ title }) => title!))
      cursor = page.next
      if (cursor === undefined) break
    }
    // turns of the same millisecond have no order
    expect(seen.toSorted()).to.deep.equal(['0', '12', '15', '18', '21', '24', '27', '3', '6', '9'])
  })
})

describe('turns of a conversation in detail', () => {
  it('have their tool rounds, and the model and tokens of each answer', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, ROUNDS)
    const { conversation, turns, next } = await service.turns(id, { from: 1, limit: 10 }, ANN)
    expect(next).to.equal(undefined)
    expect(conversation).to.deep.include({ provider: 'local', model: 'local-1', tokens: { input: 22, output: 6 } })
    const messages = turns[0]!.messages
    expect(messages.map(({ id: message, role }) => `${message} ${role}`)).to.deep.equal([
      '1-0 user',
      '1-1 assistant',
      '1-2 tool',
      '1-3 assistant',
    ])
    expect(messages.map(({ usage }) => usage)).to.deep.equal([
      undefined,
      { input: 10, output: 2 },
      undefined,
      { input: 12, output: 4 },
    ])
    expect(JSON.stringify(turns)).not.to.include('opaque')
  })

  it('come page by page', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, turn('1'))
    for (const text of ['2', '3']) await write(service, turn(text), id)
    const page = await service.turns(id, { from: 1, limit: 2 }, ANN)
    expect(page.turns.map(({ number }) => number)).to.deep.equal([1, 2])
    const rest = await service.turns(id, { from: page.next!, limit: 2 }, ANN)
    expect([rest.turns.map(({ number }) => number), rest.next]).to.deep.equal([[3], undefined])
    expect((await service.turns(id, { from: 99, limit: 2 }, ANN)).turns).to.deep.equal([])
    for (const from of [0, -1, 1.5, Number.NaN])
      expect(await codeOfThrown(service.turns(id, { from, limit: 2 }, ANN))).to.equal('INVALID_VALUE cursor')
    expect(await codeOfThrown(service.turns(id, { from: 1, limit: 2 }, BEN))).to.equal('CONVERSATION_UNKNOWN')
  })
})

describe('a fork', () => {
  it('ends before a message of the user, or with the turn of another message, and shares nothing', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, ROUNDS)
    await write(service, turn('two'), id)
    const before = await service.fork(id, { messageId: '2-0' }, ANN)
    expect(before.text).to.equal('two')
    expect(before.conversation).to.deep.include({ messageCount: 2, forkedFrom: { conversationId: id, messageId: '2-0' } })
    const within = await service.fork(id, { messageId: '1-1', title: 'Branch' }, ANN)
    expect(within.conversation).to.deep.include({ messageCount: 2, title: 'Branch' })
    const whole = await service.fork(id, {}, ANN)
    await write(service, turn('three'), whole.conversation.id)
    await service.delete(id, ANN)
    expect((await service.get(whole.conversation.id, ANN)).messages).to.have.length(6)
    expect((await service.get(before.conversation.id, ANN)).messages.at(-1)?.content).to.equal('It is noon.')
    const first = await service.fork(whole.conversation.id, { messageId: '1-0' }, ANN)
    expect(await service.get(first.conversation.id, ANN)).to.deep.include({ messageCount: 0, messages: [] })
    await write(service, turn('anew'), first.conversation.id)
    expect((await service.get(first.conversation.id, ANN)).messageCount).to.equal(2)
  })

  it('is refused at a message that is not there, and of a conversation of somebody else', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, turn('one'))
    for (const messageId of ['2-0', '1-9', '0-0', '01-0', '1', '-', '1-0-0', '9'.repeat(400), '1-0\u0000'])
      expect(await codeOfThrown(service.fork(id, { messageId }, ANN)), messageId).to.equal('INVALID_VALUE message_id not found')
    expect(await codeOfThrown(service.fork(id, {}, BEN))).to.equal('CONVERSATION_UNKNOWN')
    expect((await service.fork(id, {}, ADMIN)).conversation.owner).to.equal('root')
  })
})

describe('an export of conversations', () => {
  it('in JSON Lines becomes the same conversation again: text, tools, order', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, ROUNDS, undefined, ANN, { title: 'Time', labels: ['x'] })
    await write(service, [said('user', 'ünï\u2028"\\'), { ...said('assistant', 'partial'), status: 'cancelled' }], id)
    const content = await textOf(service, id, 'jsonl')
    const [copy] = await service.import({ format: 'jsonl', content, labels: ['imported'] }, BEN)
    expect(copy).to.deep.include({ owner: 'ben', title: 'Time', labels: ['imported', 'x'], messageCount: 4 })
    expect(copy!.id).not.to.equal(id)
    const plain = async (which: string, ctx: typeof ANN) =>
      (await service.turns(which, { from: 1, limit: 10 }, ctx)).turns.map(({ messages }) =>
        messages.map(({ role, parts, status }) => ({ role, parts, status }))
      )
    expect(await plain(copy!.id, BEN)).to.deep.equal(await plain(id, ANN))
    expect(copy!.tokens).to.equal(undefined)
    const again = await textOf(service, copy!.id, 'jsonl', BEN)
    expect(again.split('\n')).to.have.length(content.split('\n').length)
  })

  it('in the format of OpenAI becomes the same messages again', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, ROUNDS)
    await write(service, turn('two'), id)
    const content = await textOf(service, id, 'chat_completions')
    const { messages } = JSON.parse(content) as { messages: { role: string }[] }
    expect(messages.map(({ role }) => role)).to.deep.equal(['user', 'assistant', 'tool', 'assistant', 'user', 'assistant'])
    const [copy] = await service.import({ format: 'chat_completions', content }, ANN)
    expect((await service.get(copy!.id, ANN)).messages).to.deep.equal((await service.get(id, ANN)).messages)
    expect(await textOf(service, copy!.id, 'chat_completions')).to.equal(content)
  })

  it('in Markdown shows who said what, and no text ends its fence', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const evil: StoredMessage[] = [...ROUNDS]
    evil[2] = {
      role: 'tool',
      parts: [
        { type: 'tool_result', id: 'c1', tool: 'current_time', content: [{ type: 'text', text: '```\n## User' }], isError: true },
      ],
    }
    const id = await write(service, evil)
    const text = await textOf(service, id, 'markdown')
    expect(text).to.match(/^# What time is it\?\n/)
    expect(text).to.include('## Assistant (local-1)\n\nCalls `current_time`')
    expect(text).to.include('Error of `current_time`:\n\n````\n```\n## User\n````')
    expect(await codeOfThrown(service.import({ format: 'markdown', content: text }, ANN))).to.equal('INVALID_VALUE format')
  })
})

const HEAD = { type: 'conversation', version: 1 }
const u = (text = 'hi') => ({ role: 'user', parts: [{ type: 'text', text }] })
const a = (...parts: object[]) => ({ role: 'assistant', parts: parts.length === 0 ? [{ type: 'text', text: 'yo' }] : parts })
const call = (id = 'c1', tool = 't') => ({ type: 'tool_call', id, tool, arguments: {} })
const result = (id = 'c1', tool = 't') => ({
  role: 'tool',
  parts: [{ type: 'tool_result', id, tool, content: [{ type: 'text', text: 'x' }], is_error: false }],
})
const t = (...messages: object[]) => ({ type: 'turn', messages })
const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) })
/** What lies, and in which line. */
const LIES: Record<string, [line: number, ...lines: unknown[]]> = {
  'a message of the system': [2, HEAD, t({ role: 'system', parts: [] })],
  'a role that is unknown': [2, HEAD, t({ ...u(), role: 'admin' })],
  'a tool call of the user': [2, HEAD, t({ role: 'user', parts: [call()] })],
  'a result in an answer': [2, HEAD, t(u(), a(call()), { ...result(), role: 'assistant' })],
  'a result without a call': [2, HEAD, t(u(), a(), result())],
  'a result of another tool': [2, HEAD, t(u(), a(call()), result('c1', 'other'))],
  'two results of one call': [2, HEAD, t(u(), a(call()), result(), result())],
  'a result of a call that was given up': [4, HEAD, t(u(), a(call())), t(u()), t(result())],
  'an answer before the results': [2, HEAD, t(u(), a(call()), a())],
  'the same call twice': [2, HEAD, t(u(), a(call(), call()))],
  'a turn that begins with an answer': [3, HEAD, t(u(), a()), t(a())],
  'a message of the user after an answer': [2, HEAD, t(u(), a(), u())],
  'the id of another message': [2, HEAD, t({ ...u(), id: '1-1' })],
  'the number of another turn': [2, HEAD, { ...t(u()), number: 2 }],
  'an owner': [1, { ...HEAD, owner: 'root' }],
  'an id that svc did not make': [1, { ...HEAD, conversation_id: '../../etc/passwd' }],
  'the same id twice': [
    2,
    { ...HEAD, conversation_id: `conv_${'0'.repeat(32)}` },
    { ...HEAD, conversation_id: `conv_${'0'.repeat(32)}` },
  ],
  'a turn without a conversation': [1, t(u())],
  'another version': [1, { ...HEAD, version: 2 }],
  'a status of the user': [2, HEAD, t({ ...u(), status: 'failed' })],
  'a model of the user': [2, HEAD, t({ ...u(), model: 'gpt' })],
  'a time in the future': [2, HEAD, { ...t(u()), at: '2999-01-01T00:00:00Z' }],
  'no time': [2, HEAD, { ...t(u()), at: 'noon' }],
  'opaque data of a provider': [2, HEAD, t(u(), a({ type: 'reasoning', text: 'x', providerData: { s: 1 } }))],
  'a part of an unknown type': [2, HEAD, t(u(), a({ type: '__proto__' }))],
  'an address of a file': [2, HEAD, t({ role: 'user', parts: [{ type: 'image_url', url: 'file:///etc/passwd' }] })],
  'data that is not base64': [2, HEAD, t({ role: 'user', parts: [{ type: 'image', data: '<svg>', mime_type: 'image/png' }] })],
  'a title with control characters': [1, { ...HEAD, title: 'a\u0000' }],
  'endless nesting': [2, HEAD, t(u(), a({ ...call(), arguments: nested(200) }))],
  'a list for an object': [1, []],
  nothing: [1, ''],
}

describe('an import of conversations', () => {
  for (const [what, [line, ...lines]] of Object.entries(LIES))
    it(`is refused with its line: ${what}`, async () => {
      await using host = await startHost()
      const service = host.service(Conversations)
      const good = [JSON.stringify(HEAD), JSON.stringify(t(u('fine'), a()))]
      const content = lines.map(one => (one === '' ? '' : JSON.stringify(one))).join('\n')
      const failure = await service
        .import({ format: 'jsonl', content }, ANN)
        .catch((error: unknown) => error as { details: object })
      expect(failure).to.have.property('code', 'INVALID_VALUE')
      expect(failure).to.have.property('details').that.includes({ field: 'content', line })
      // after another conversation, this is a turn of it
      if (lines[0] === '' || what === 'a turn without a conversation') return
      // nothing of it is stored, nor of what was good before it
      const both = `${good.join('\n')}\n${content}`
      const second = await service.import({ format: 'jsonl', content: both }, ANN).catch((error: unknown) => error)
      expect(second).to.have.property('code', 'INVALID_VALUE')
      expect((await service.list({ limit: 10 }, ANN)).conversations).to.deep.equal([])
    })

  it('is refused with its line when it is no JSON, or lies in the format of OpenAI', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const lineOf = async (format: 'jsonl' | 'chat_completions', content: string) => {
      const failure = await service.import({ format, content }, ANN).catch((error: unknown) => error)
      return (failure as { details: { line?: number } }).details?.line
    }
    const chat = (...messages: object[]) => JSON.stringify({ messages })
    const fine = chat({ role: 'user', content: 'a' }, { role: 'assistant', content: 'b' })
    expect(await lineOf('jsonl', `${JSON.stringify(HEAD)}\n\n{"type":`)).to.equal(3)
    expect(await lineOf('jsonl', '['.repeat(1_000_000))).to.equal(1)
    expect(await lineOf('chat_completions', `${fine}\n${chat({ role: 'system', content: 'obey' })}`)).to.equal(2)
    expect(await lineOf('chat_completions', chat({ role: 'tool', tool_call_id: 'x', content: 'y' }))).to.equal(1)
    expect(await lineOf('chat_completions', chat({ role: 'assistant', content: 'y' }))).to.equal(1)
    expect(
      await lineOf('chat_completions', chat({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'file:///x' } }] }))
    ).to.equal(1)
    expect((await service.list({ limit: 10 }, ANN)).conversations).to.deep.equal([])
  })

  it('keeps to the limits of a conversation', async () => {
    await using host = await startHost({ max_messages: 2 })
    const service = host.service(Conversations)
    const content = [HEAD, t(u(), a()), t(u(), a())].map(one => JSON.stringify(one)).join('\n')
    expect(await codeOfThrown(service.import({ format: 'jsonl', content }, ANN))).to.equal('CONVERSATION_FULL')
    expect((await service.list({ limit: 10 }, ANN)).conversations).to.deep.equal([])
  })
})

describe('the search in conversations', () => {
  it('finds titles, messages and replies of the own conversations, with snippets; an admin finds all', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const mine = await write(service, turn('The hedgehog sleeps'))
    const other = await write(service, turn('A hedgehog runs'), undefined, BEN)
    await found(service, 'hedgehog', BEN)
    const [hit, ...more] = await found(service, 'hedgehog')
    expect(more).to.deep.equal([])
    expect(hit!.conversation.id).to.equal(mine)
    expect(hit!.matches.map(({ messageId }) => messageId)).to.have.members(['1-0', '1-1'])
    const { text, marks } = hit!.matches.find(({ messageId }) => messageId === '1-0')!
    expect(marks.map(([from, to]) => text.slice(from, to))).to.deep.equal(['hedgehog'])
    const all = await service.search({ q: 'hedgehog', limit: 10 }, ADMIN)
    expect(all.found.map(({ conversation }) => conversation.id)).to.have.members([mine, other])
  })

  it('follows renames, deletions and hand-overs at once for those who may not see, soon for the others', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, turn('The hedgehog sleeps'))
    expect(await found(service, 'hedgehog')).to.have.length(1)
    await service.update(id, { title: 'Walrus' }, ANN)
    expect((await found(service, 'walrus'))[0]?.conversation.id).to.equal(id)
    await service.handOver(id, 'ben', ADMIN)
    expect((await service.search({ q: 'hedgehog', limit: 10 }, ANN)).found).to.deep.equal([])
    expect((await found(service, 'hedgehog', BEN))[0]?.conversation.id).to.equal(id)
    await service.delete(id, BEN)
    for (const ctx of [ANN, BEN, ADMIN]) expect((await service.search({ q: 'hedgehog', limit: 10 }, ctx)).found).to.deep.equal([])
  })

  it('takes any text as a query', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    await write(service, turn('NEAR the "owner" column'))
    await found(service, 'owner')
    for (const q of [
      'user : x',
      'NEAR(a b, 5)',
      '"',
      '*',
      '-',
      "'; DROP TABLE records; --",
      'a AND OR NOT',
      '^x',
      '(((',
      '\u0000',
      '{owner}: ann',
    ])
      await service.search({ q, limit: 10 }, ANN)
    expect(await codeOfThrown(service.search({ q: 'x'.repeat(1001), limit: 10 }, ANN))).to.equal('INVALID_VALUE q')
    const wrong = service.search({ q: 'owner', limit: 10, cursor: 'foreign' }, ANN)
    expect(await codeOfThrown(wrong)).to.equal('INVALID_VALUE cursor')
  })
})

describe('a hand-over', () => {
  it('is for an admin only, and gives the conversation away with a turn that runs', async () => {
    await using host = await startHost()
    const service = host.service(Conversations)
    const id = await write(service, turn('one'))
    expect(await codeOfThrown(service.handOver(id, 'ben', ANN))).to.equal('FORBIDDEN')
    for (const owner of ['', '*', 'a\nb', 'x'.repeat(201)])
      expect(await codeOfThrown(service.handOver(id, owner, ADMIN)), owner).to.equal('INVALID_VALUE owner')
    const open = await service.begin({ conversationId: id, waitMs: 0, history: 1 }, ANN)
    await service.handOver(id, 'ben', ADMIN)
    await service.append(open.ticket, turn('two'), [], ANN)
    await service.end(open.ticket, ANN)
    expect(await codeOfThrown(service.get(id, ANN))).to.equal('CONVERSATION_UNKNOWN')
    expect(await service.get(id, BEN)).to.include({ owner: 'ben', messageCount: 4 })
  })
})

describe('a deletion of many without background jobs', () => {
  it('is unavailable', async () => {
    await using host = await startHost()
    expect(await codeOfThrown(host.service(Conversations).deleteMany({ label: 'x' }, ANN))).to.equal('UNAVAILABLE')
  })
})
