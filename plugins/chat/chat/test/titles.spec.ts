import type { CallContext } from '@svc/core'
import { Conversations, type ModelEvent, type ModelRequest, Providers } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { setTimeout as sleep } from 'node:timers/promises'
import { titleIn } from '../src/titles.ts'
import { type ChatHost, says, scripted, startChatHost } from './chat-host.ts'

const ctx = testContext()
const MESSAGE = 'How do I boil an egg?'

interface Options {
  readonly titles?: object
  readonly writes?: (request: ModelRequest) => readonly ModelEvent[]
}

/** A host whose turns are answered by `a`, and whose titles are written by `t`. */
async function started({ titles = {}, writes = () => says('Boiling eggs') }: Options = {}) {
  const [turns, writer] = [scripted([says('For six minutes.')]), scripted([writes])]
  const config = { chat: { titles: { by: 'model', provider: 't', ...titles } } }
  const found = await startChatHost({ give: [item(Providers, 'a', turns), item(Providers, 't', writer)], config })
  const conversations = found.host.service(Conversations)
  return {
    ...found,
    writer,
    conversations,
    ask: (more: object = {}, own: CallContext = ctx) => found.chat.reply({ message: MESSAGE, provider: 'a', ...more }, own),
    [Symbol.asyncDispose]: () => found[Symbol.asyncDispose](),
  }
}

const titleOf = async ({ host }: ChatHost, id: string) => (await host.service(Conversations).get(id, ctx)).title

/** Waits until the title is this one. */
async function titled(found: ChatHost, id: string, title: string): Promise<void> {
  for (let left = 200; (await titleOf(found, id)) !== title; left--) {
    if (left === 0) throw new Error(`the title is ${await titleOf(found, id)}`)
    await sleep(20)
  }
}

describe('titles of conversations', () => {
  it('are the first words of the message without another model call, unless a model is to write them', async () => {
    await using found = await started({ titles: { by: 'message' } })
    const { conversationId } = await found.ask()
    await sleep(50)
    expect([await titleOf(found, conversationId), found.writer.requests.length]).to.deep.equal([MESSAGE, 0])
  })

  it('are written by a model after the first turn, and only after that', async () => {
    await using found = await started()
    const { conversationId } = await found.ask()
    await titled(found, conversationId, 'Boiling eggs')
    await found.ask({ conversationId })
    const [request, ...more] = found.writer.requests
    expect(more).to.deep.equal([])
    expect(request!.maxTokens).to.equal(60)
    const [system, user] = request!.messages
    expect(JSON.stringify(system)).to.not.include('egg')
    expect(JSON.parse((user!.parts[0] as { text: string }).text)).to.deep.equal({ message: MESSAGE, reply: 'For six minutes.' })
  })

  it('never replace a title that was given, with the turn or while the model writes', async () => {
    const gate = Promise.withResolvers<void>()
    await using found = await started({})
    found.writer.chat = async function* () {
      await gate.promise
      yield* says('Boiling eggs')
    }
    const given = await found.ask({ newConversation: { title: 'Eggs' } })
    const { conversationId } = await found.ask()
    await found.conversations.update(conversationId, { title: 'Mine' }, ctx)
    gate.resolve()
    await sleep(100)
    expect(await titleOf(found, given.conversationId)).to.equal('Eggs')
    expect(await titleOf(found, conversationId)).to.equal('Mine')
  })

  it('neither delay nor fail a turn: a model that hangs, fails or is gone leaves the first words', async () => {
    await using hanging = await started({ titles: { timeout_ms: 200 } })
    const aborted = Promise.withResolvers<void>()
    hanging.writer.chat = async function* (_request, { signal }) {
      await new Promise((_, reject) =>
        signal.addEventListener('abort', () => {
          aborted.resolve()
          reject(signal.reason)
        })
      )
      yield* says('late')
    }
    const begun = performance.now()
    const { conversationId, response } = await hanging.ask()
    // longer than the time limit of the call
    await hanging.ask({ conversationId })
    expect([response, performance.now() - begun < 150]).to.deep.equal(['For six minutes.', true])
    await aborted.promise
    expect(await titleOf(hanging, conversationId)).to.equal(MESSAGE)

    const failing = () => {
      throw new Error('no')
    }
    for (const options of [{ writes: failing }, { titles: { provider: 'absent' } }, { writes: () => says('"\n#\n"') }]) {
      await using found = await started(options)
      const reply = await found.ask()
      await sleep(100)
      expect([reply.response, await titleOf(found, reply.conversationId)]).to.deep.equal(['For six minutes.', MESSAGE])
    }
  })

  it('are bounded: not more than a few are written at once, and more than a hundred do not wait', async () => {
    await using found = await started({})
    let [now, most, all] = [0, 0, 0]
    const gate = Promise.withResolvers<void>()
    found.writer.chat = async function* () {
      most = Math.max(most, ++now)
      all++
      await gate.promise
      now--
      yield* says('T')
    }
    const as = (at: number) => testContext({ principal: { id: `p${at % 10}`, scopes: ['chat'] } })
    await Promise.all(Array.from({ length: 150 }, (_, at) => found.ask({}, as(at))))
    gate.resolve()
    for (let before = -1; before !== all; before = all) await sleep(200)
    expect(most).to.equal(4)
    expect(all).to.be.at.most(104).and.at.least(100)
  })

  it('are one short line of plain text, whatever the model says', () => {
    for (const [answer, title] of [
      ['Boiling eggs', 'Boiling eggs'],
      ['\n\n  # **Title: "Boiling eggs"**\nand more', 'Boiling eggs'],
      ['a\u0000b\u0007c\u001b[31m d\te', 'abc[31m d e'],
      ['\u202egge\u202c \u2066x\u2069', 'gge x'],
      ['a\u200bb\u{e0041}c', 'abc'],
      ['\ud800 lone', '\ufffd lone'],
      ['', undefined],
      ['"" ** \n --- \u0000', undefined],
    ] as const)
      expect(titleIn(answer), JSON.stringify(answer)).to.equal(title)
    const long = titleIn('word '.repeat(10_000))!
    expect(Array.from(long).length).to.be.at.most(80)
    expect(long.endsWith('…')).to.equal(true)
    expect(titleIn('🙂'.repeat(100))).to.equal(`${'🙂'.repeat(79)}…`)
  })
})
