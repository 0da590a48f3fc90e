import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf } from '@svc/core'
import type { Conversations, NewConversation, StoredMessage, TurnStep } from '@svc/core/contracts'
import { abortable, caseMaker, type KitCase } from './kit-case.ts'

/** Conversations to test: there are none yet. */
export interface ConversationsSubject {
  readonly conversations: Conversations
  /** The same conversations in another process. */
  readonly other: Conversations
  /** Whether they have the full-text search. */
  readonly searches: boolean
  close?(): unknown
}

/**
 * Cases for every provider of conversations: `for (const one of conversationsKit(open)) it(one.title, one.run)`. `open` returns
 * empty conversations each time, as seen by two processes.
 */
export function conversationsKit(open: () => ConversationsSubject | Promise<ConversationsSubject>): KitCase[] {
  const make = caseMaker(open)
  return [...turns(make), ...access(make), ...changes(make), ...copies(make)]
}

type Make = ReturnType<typeof caseMaker<ConversationsSubject>>

const { ctx } = abortable('conversations kit')
const as = (id: string, ...scopes: string[]): CallContext => ({ ...ctx, principal: { id, scopes } })
const [ANNA, BEN, ADMIN] = [as('anna'), as('ben'), as('root', 'admin')]

const said = (role: 'user' | 'assistant', text: string): StoredMessage => ({ role, parts: [{ type: 'text', text }] })
const turn = (text: string): StoredMessage[] => [said('user', text), said('assistant', `re: ${text}`)]
const ROUNDS: readonly StoredMessage[] = [
  said('user', 'When?'),
  { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', tool: 'clock', arguments: { zone: 'UTC' } }] },
  {
    role: 'tool',
    parts: [{ type: 'tool_result', id: 'c1', tool: 'clock', content: [{ type: 'text', text: 'noon' }], isError: false }],
  },
  said('assistant', 'At noon.'),
]
const step = (message: number, input: number): TurnStep => ({ message, provider: 'p', model: 'm', usage: { input, output: 1 } })

interface Writing {
  readonly id?: string
  readonly as?: CallContext
  readonly names?: NewConversation
  readonly steps?: readonly TurnStep[]
}

/** Stores a turn and returns the conversation. */
async function write(service: Conversations, messages: readonly StoredMessage[], writing: Writing = {}): Promise<string> {
  const { id, as: who = ANNA, names, steps = [] } = writing
  const wish = { ...(id === undefined ? {} : { conversationId: id }), ...(names && { newConversation: names }) }
  const open = await service.begin({ ...wish, waitMs: 5_000, history: 100 }, who)
  try {
    await service.append(open.ticket, messages, steps, who)
  } finally {
    await service.end(open.ticket, who)
  }
  return open.conversationId
}

async function refused(work: Promise<unknown>, code: string, details: object = {}): Promise<void> {
  const error: unknown = await work.then(
    value => assert.fail(`expected ${code}, got ${JSON.stringify(value)?.slice(0, 500)}`),
    (thrown: unknown) => thrown
  )
  assert.equal(codeOf(error), code, String(error))
  assert.partialDeepStrictEqual((error as { details?: object }).details ?? {}, details)
}

const texts = async (service: Conversations, id: string, who = ANNA) =>
  (await service.get(id, who)).messages.map(({ content }) => content)
const exported = async (service: Conversations, id: string, format: 'jsonl' | 'chat_completions') =>
  (await Array.fromAsync(service.export(id, format, ANNA))).join('')

function turns(make: Make): KitCase[] {
  return [
    make(
      'creates the conversation of a restored turn under its id, once, and under no id of a client',
      async ({ conversations, other }) => {
        const first = await conversations.begin({ waitMs: 5_000, history: 0 }, ANNA)
        await conversations.end(first.ticket, ANNA)
        const id = first.conversationId
        const names = { title: 'Again' }
        const wish = { conversationId: id, restored: true, newConversation: names, waitMs: 5_000, history: 0 }
        const open = await other.begin(wish, ANNA)
        assert.partialDeepStrictEqual(open, { conversationId: id, exists: false, turns: [] })
        await other.append(open.ticket, turn('once'), [], ANNA)
        await other.end(open.ticket, ANNA)
        assert.deepEqual(await texts(conversations, id), ['once', 're: once'])
        const late = await conversations.begin(wish, BEN)
        await refused(conversations.append(late.ticket, turn('twice'), [], BEN), 'CONVERSATION_UNKNOWN')
        await conversations.end(late.ticket, BEN)
        await refused(conversations.begin({ ...wish, conversationId: '../x' }, ANNA), 'CONVERSATION_UNKNOWN')
        assert.deepEqual(await texts(conversations, id), ['once', 're: once'])
      }
    ),
    make('stores turns in order, and gives the next turn those before', async ({ conversations, other }) => {
      const id = await write(conversations, turn('one'))
      await write(other, turn('two'), { id })
      const open = await conversations.begin({ conversationId: id, waitMs: 5_000, history: 1 }, ANNA)
      await conversations.end(open.ticket, ANNA)
      assert.deepEqual(open.turns, [turn('two')])
      assert.deepEqual(await texts(other, id), ['one', 're: one', 'two', 're: two'])
    }),
    make('lets one turn at a time write, in all processes', async ({ conversations, other }) => {
      const id = await write(conversations, turn('one'))
      const open = await conversations.begin({ conversationId: id, waitMs: 0, history: 1 }, ANNA)
      await refused(other.begin({ conversationId: id, waitMs: 0, history: 1 }, ANNA), 'CONVERSATION_BUSY')
      await conversations.end(open.ticket, ANNA)
      await write(other, turn('two'), { id })
    }),
    make('stores nothing of a turn that ends without messages', async ({ conversations }) => {
      const open = await conversations.begin({ waitMs: 0, history: 0 }, ANNA)
      await conversations.end(open.ticket, ANNA)
      await refused(conversations.get(open.conversationId, ANNA), 'CONVERSATION_UNKNOWN')
    }),
    make('shows tool rounds, and the model and tokens of each answer', async ({ conversations }) => {
      const id = await write(conversations, ROUNDS, { steps: [step(1, 5), step(3, 7)] })
      const { turns: stored, conversation } = await conversations.turns(id, { from: 1, limit: 10 }, ANNA)
      const [one] = stored
      assert.deepEqual(
        one?.messages.map(({ role, parts }) => ({ role, parts })),
        ROUNDS
      )
      assert.equal(new Set(one?.messages.map(message => message.id)).size, 4)
      assert.deepEqual(one?.messages[3]?.usage, { input: 7, output: 1 })
      assert.deepEqual(conversation.tokens, { input: 12, output: 2 })
      assert.deepEqual(await texts(conversations, id), ['When?', 'At noon.'])
    }),
  ]
}

function access(make: Make): KitCase[] {
  return [
    make('hides conversations from other principals, as if they did not exist', async ({ conversations }) => {
      const id = await write(conversations, turn('mine'))
      const unknown = 'CONVERSATION_UNKNOWN'
      await refused(conversations.get(id, BEN), unknown)
      await refused(conversations.turns(id, { from: 1, limit: 1 }, BEN), unknown)
      await refused(conversations.update(id, { title: 'x' }, BEN), unknown)
      await refused(conversations.fork(id, {}, BEN), unknown)
      await refused(Array.fromAsync(conversations.export(id, 'jsonl', BEN)), unknown)
      await refused(conversations.begin({ conversationId: id, waitMs: 0, history: 0 }, BEN), unknown)
      await refused(conversations.delete(id, BEN), unknown)
      assert.deepEqual((await conversations.list({ limit: 10 }, BEN)).conversations, [])
      assert.equal((await conversations.get(id, ADMIN)).owner, 'anna')
    }),
    make('lists the own ones, newest first, page by page and by label', async ({ conversations }) => {
      const ids: string[] = []
      for (const at of [0, 1, 2]) {
        ids.unshift(await write(conversations, turn(`${at}`), { names: { labels: [at === 1 ? 'odd' : 'even'] } }))
        await sleep(5)
      }
      const first = await conversations.list({ limit: 2 }, ANNA)
      const second = await conversations.list({ limit: 2, cursor: first.next! }, ANNA)
      assert.deepEqual(
        [...first.conversations, ...second.conversations].map(one => one.id),
        ids
      )
      const { conversations: odd } = await conversations.list({ limit: 2, label: 'odd' }, ANNA)
      assert.deepEqual(
        odd.map(one => one.id),
        [ids[1]]
      )
      await refused(conversations.list({ limit: 2, cursor: 'foreign' }, ANNA), 'INVALID_VALUE', { field: 'cursor' })
    }),
    make('finds the own ones by their texts, if it searches', async ({ conversations, other, searches }) => {
      const id = await write(conversations, turn('A hedgehog in the garden'))
      if (!searches) return refused(conversations.search({ q: 'hedgehog', limit: 5 }, ANNA), 'UNAVAILABLE')
      let found = (await other.search({ q: 'hedgehog', limit: 5 }, ANNA)).found
      for (let left = 200; left > 0 && found.length === 0; left--) {
        await sleep(50)
        found = (await other.search({ q: 'hedgehog', limit: 5 }, ANNA)).found
      }
      assert.deepEqual(
        found.map(({ conversation }) => conversation.id),
        [id]
      )
      assert.deepEqual((await conversations.search({ q: 'hedgehog', limit: 5 }, BEN)).found, [])
      await conversations.delete(id, ANNA)
      assert.deepEqual((await other.search({ q: 'hedgehog', limit: 5 }, ANNA)).found, [])
    }),
  ]
}

function changes(make: Make): KitCase[] {
  return [
    make('makes a title from the first turn, and takes a given one', async ({ conversations }) => {
      const made = await write(conversations, turn('The first\nwords'))
      const given = await write(conversations, turn('x'), { names: { title: 'Given', labels: ['b', 'a', 'b'] } })
      assert.equal((await conversations.get(made, ANNA)).title, 'The first words')
      assert.partialDeepStrictEqual(await conversations.get(given, ANNA), { title: 'Given', labels: ['a', 'b'] })
    }),
    make('changes names and owner while a turn runs, and stores the turn', async ({ conversations, other }) => {
      const id = await write(conversations, turn('one'))
      const open = await conversations.begin({ conversationId: id, waitMs: 0, history: 0 }, ANNA)
      await other.update(id, { title: 'New' }, ANNA)
      await refused(other.handOver(id, 'ben', ANNA), 'FORBIDDEN')
      await other.handOver(id, 'ben', ADMIN)
      await conversations.append(open.ticket, turn('two'), [], ANNA)
      await conversations.end(open.ticket, ANNA)
      assert.partialDeepStrictEqual(await other.get(id, BEN), { title: 'New', owner: 'ben', messageCount: 4 })
      await refused(other.get(id, ANNA), 'CONVERSATION_UNKNOWN')
    }),
    make('refuses names that cannot be shown', async ({ conversations }) => {
      const id = await write(conversations, turn('one'))
      const labels = Array.from({ length: 100_000 }, (_, at) => `l${at}`)
      for (const title of ['', ' ', 'a\u0000b', 'a\u001b[2J', 'x'.repeat(100_000)])
        await refused(conversations.update(id, { title }, ANNA), 'INVALID_VALUE', { field: 'title' })
      for (const wrong of [labels, ['a\nb'], ['']])
        await refused(conversations.update(id, { labels: wrong }, ANNA), 'INVALID_VALUE', { field: 'labels' })
    }),
    make('deletes once, and a turn that was open cannot bring it back', async ({ conversations, other }) => {
      const id = await write(conversations, turn('one'))
      const open = await conversations.begin({ conversationId: id, waitMs: 0, history: 0 }, ANNA)
      await other.delete(id, ANNA)
      await refused(conversations.append(open.ticket, turn('two'), [], ANNA), 'CONVERSATION_UNKNOWN')
      await conversations.end(open.ticket, ANNA)
      await refused(other.delete(id, ANNA), 'CONVERSATION_UNKNOWN')
    }),
  ]
}

function copies(make: Make): KitCase[] {
  return [
    make('forks at a message into a copy that shares nothing', async ({ conversations, other }) => {
      const id = await write(conversations, ROUNDS)
      await write(conversations, turn('two'), { id })
      const { turns: stored } = await conversations.turns(id, { from: 2, limit: 1 }, ANNA)
      const { conversation: copy, text } = await other.fork(id, { messageId: stored[0]!.messages[0]!.id }, ANNA)
      assert.equal(text, 'two')
      await write(other, turn('three'), { id: copy.id })
      await conversations.delete(id, ANNA)
      assert.deepEqual(await texts(other, copy.id), ['When?', 'At noon.', 'three', 're: three'])
      await refused(other.fork(copy.id, { messageId: '9-9' }, ANNA), 'INVALID_VALUE', { field: 'message_id' })
    }),
    make('imports what it exports: text, tools, order', async ({ conversations, other }) => {
      const id = await write(conversations, ROUNDS, { names: { title: 'Time', labels: ['x'] } })
      for (const format of ['jsonl', 'chat_completions'] as const) {
        const [copy] = await other.import({ format, content: await exported(conversations, id, format) }, BEN)
        assert.equal(copy?.owner, 'ben')
        const { turns: stored } = await other.turns(copy.id, { from: 1, limit: 9 }, BEN)
        assert.deepEqual(
          stored.flatMap(({ messages }) => messages.map(({ role, parts }) => ({ role, parts }))),
          ROUNDS
        )
      }
    }),
    make('refuses an import that lies, with its line, and stores nothing of it', async ({ conversations }) => {
      const head = '{"type":"conversation","version":1}'
      const fine = '{"type":"turn","messages":[{"role":"user","parts":[{"type":"text","text":"a"}]}]}'
      for (const lie of [fine.replace('user', 'system'), fine.replace('"role"', '"id":"9-9","role"'), '{"type":'])
        await refused(conversations.import({ format: 'jsonl', content: [head, fine, lie].join('\n') }, ANNA), 'INVALID_VALUE', {
          field: 'content',
          line: 3,
        })
      assert.deepEqual((await conversations.list({ limit: 10 }, ANNA)).conversations, [])
    }),
  ]
}
