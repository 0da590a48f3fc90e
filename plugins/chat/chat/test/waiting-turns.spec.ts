import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { definePlugin, svcError } from '@svc/core'
import {
  Chat,
  type ChatQuestion,
  Conversations,
  Peers,
  Providers,
  Store,
  type Tool,
  Tools,
  type TurnEvent,
  TurnStreams,
} from '@svc/core/contracts'
import { item, testContext, testHost } from '@svc/testing'
import { expect } from 'chai'
import { pluginFolder } from '../../../../test/support/plugin-folder.ts'
import { calls, codeThrown, says, scripted, tool } from './chat-host.ts'

const BASE = ['store-sqlite', 'conversations', 'selection', 'modes', 'chat', 'model-calls'].map(pluginFolder)

/** A worker that no other one answers, as if they had exited. */
const alone = definePlugin({
  provides: Peers,
  setup: ({ hooks }) => ({
    broadcast: async (topic, message, ctx) => {
      await hooks.message({ topic, message }, ctx)
    },
    metrics: async () => [],
    acquire: async () => true,
    release: async () => {},
    self: async () => 'alone',
    // oxlint-disable-next-line require-yield
    async *ask() {
      throw svcError('PEER_GONE', 'gone')
    },
  }),
})

/** Two workers with one store, neither of which reaches the other. */
async function startPair(message: string, asksFor: 'a permission' | 'a form' = 'a permission') {
  const folder = await mkdtemp(join(tmpdir(), 'svc-waiting-'))
  const runs: string[] = []
  const start = (name: string) => {
    const model = scripted([request => (request.messages.at(-1)?.role === 'tool' ? says('so') : calls(['t', { message }]))])
    const call = async () => {
      runs.push(name)
      return { content: [{ type: 'text' as const, text: 'done' }] }
    }
    const run: Tool['run'] = async function* (_args, { answers }) {
      const request = { method: 'elicitation/create', params: { message: '?', requestedSchema: { type: 'object' } } } as const
      if (answers) yield { type: 'result', result: await call() }
      else yield { type: 'input', requests: { request }, state: 'open' }
    }
    const asking = asksFor === 'a form' ? tool({ run, call }) : tool({ asks: true, call })
    return testHost(BASE, {
      give: [{ name: 'peers', use: alone }, item(Providers, 'a', model), item(Tools, 't', asking)],
      config: { store: { path: join(folder, 'svc.db') } },
    })
  }
  const hosts = [await start('first'), await start('second')] as const
  const [first, second] = hosts.map(host => ({
    chat: host.service(Chat),
    streams: host.service(TurnStreams),
    store: host.service(Store),
    conversations: host.service(Conversations),
  }))
  return {
    first: first!,
    second: second!,
    runs,
    async [Symbol.asyncDispose]() {
      for (const host of hosts) await host.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Reads a turn in the background, up to its question. */
async function waitingIn({ streams }: { readonly streams: TurnStreams }, message: string) {
  const events: TurnEvent[] = []
  const asked = Promise.withResolvers<void>()
  const read = async () => {
    for await (const event of streams.begin({ message, provider: 'a', interactive: true, forms: true }, {}, testContext())) {
      events.push(event)
      if (event.type === 'ask') asked.resolve()
    }
  }
  const over = read()
  await Promise.race([asked.promise, over])
  return { events, over }
}

const answerTo = ({ requestId, callId }: ChatQuestion) => ({ requestId, callId, allow: true })

describe('a stored turn that waits for a person', () => {
  const at = (asksFor: 'a permission' | 'a form') => async () => {
    await using pair = await startPair('hi', asksFor)
    const { first, second } = pair
    const { events, over } = await waitingIn(first, 'hi')
    const [question] = await first.chat.questions(testContext())
    expect(question).to.include({ tool: 't', callId: 'c1' }).and.not.have.property('interrupted')
    expect(await second.chat.questions(testContext())).to.deep.equal([])
    // as the supervisor does for a worker that has exited
    await first.store.releaseHolder('', testContext())
    const [offered] = await second.chat.questions(testContext())
    expect(offered).to.deep.include({ callId: 'c1', turnId: question!.turnId, interrupted: true, arguments: { message: 'hi' } })
    await second.chat.answer(answerTo(offered!), testContext())
    const continued = await Array.fromAsync(second.streams.resume(offered!.turnId!, 0, testContext()))
    expect(continued.at(-1)).to.include({ type: 'end', status: 'completed' })
    expect(continued.slice(0, events.length)).to.deep.equal(events)
    const { code } = await codeThrown(first.chat.answer(answerTo(question!), testContext()))
    expect(code).to.equal('QUESTION_UNKNOWN')
    await over
    expect(events.at(-1)).to.include({ type: 'end', status: 'failed' })
    expect(pair.runs).to.deep.equal(['second'])
    const { conversationId } = offered!
    const { messages } = await second.conversations.get(conversationId, testContext())
    expect(messages.map(({ content, status }) => [content, status])).to.deep.equal([
      ['hi', undefined],
      ['so', undefined],
    ])
  }
  const ONE = 'goes on at one worker only, when the worker of the turn was only thought to have exited'
  it(`${ONE}, for a permission`, at('a permission'))
  it(`${ONE}, for a form`, at('a form'))

  it('is gone from the store when it is answered, denied or cancelled; a turn without a question is never there', async () => {
    await using pair = await startPair('hi')
    const { first } = pair
    const stored = async () => {
      const pages = ['chat_waiting_turns', 'chat_waiting_states'].map(name =>
        first.store.range(name, { limit: 10 }, testContext())
      )
      return (await Promise.all(pages)).map(({ records }) => records.length)
    }
    for (const how of ['allow', 'deny', 'cancel']) {
      const { over, events } = await waitingIn(first, how)
      expect(await stored()).to.deep.equal([1, 1])
      const [question] = await first.chat.questions(testContext())
      if (how === 'cancel') await first.streams.cancel(question!.turnId!, testContext())
      else await first.chat.answer({ ...answerTo(question!), allow: how === 'allow' }, testContext())
      // an answer counts only when it is removed
      if (how !== 'cancel') expect(await stored()).to.deep.equal([0, 0])
      await over
      expect(await stored()).to.deep.equal([0, 0])
      expect(events.at(-1)).to.include({ status: how === 'cancel' ? 'cancelled' : 'completed' })
    }
    for await (const _ of first.streams.begin({ message: 'hi', provider: 'a', tools: [] }, {}, testContext()))
      expect(await stored()).to.deep.equal([0, 0])
    expect(pair.runs).to.deep.equal(['first'])
  })
})
