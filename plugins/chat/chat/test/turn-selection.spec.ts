import { type ModelRequest, Conversations, Providers, type Tool, Tools } from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, codeThrown, says, scripted, tool } from './chat-host.ts'

const PROFILES = `profiles:
  default: { system_prompt: Be kind. }
  strict: { provider: a, system_prompt: Be strict., mode: review }
`
const startWith = (a: ReturnType<typeof scripted>, entry: Partial<Tool> = {}) =>
  startChatHost({ profiles: PROFILES, give: [item(Providers, 'a', a), item(Tools, 't', tool(entry))] })
const systemOf = ({ messages }: ModelRequest) => JSON.stringify(messages.filter(({ role }) => role === 'system'))
const ctx = testContext()

describe('the selection that a turn requests', () => {
  it('is a profile and a mode of its own', async () => {
    const a = scripted([says('so')])
    await using found = await startWith(a)
    await found.chat.reply({ message: 'hi', profile: 'strict' }, ctx)
    await found.chat.reply({ message: 'hi', profile: 'strict', mode: 'plan' }, ctx)
    const [review, plan] = a.requests.map(systemOf)
    expect(review).to.include('Be strict.')
    expect(plan).to.include('Be strict.').and.not.equal(review)
  })

  it('is no profile or mode that is not there', async () => {
    await using found = await startWith(scripted([says('so')]))
    for (const wish of [{ profile: 'none' }, { mode: 'none' }]) {
      const { code, details } = await codeThrown(found.chat.reply({ message: 'hi', ...wish }, ctx))
      expect([code, details.field]).to.deep.equal(['INVALID_VALUE', Object.keys(wish)[0]])
    }
  })

  it("is a system prompt instead of the profile's, with the mode's after it", async () => {
    const a = scripted([says('so')])
    await using found = await startWith(a)
    await found.chat.reply({ message: 'hi', provider: 'a', system: 'You are a pirate.' }, ctx)
    await found.chat.reply({ message: 'hi', provider: 'a' }, ctx)
    const [pirate, kind] = a.requests.map(systemOf)
    expect(pirate).to.equal(kind!.replace('Be kind.', 'You are a pirate.')).and.include('pirate')
  })

  it('is a number of tool calls: those above it are refused, and then there are none', async () => {
    const a = scripted([calls(['t', { n: 1 }], ['t', { n: 2 }]), says('so')])
    await using found = await startWith(a)
    const { toolsUsed } = await found.chat.reply({ message: 'hi', provider: 'a', toolBudget: 1 }, ctx)
    expect(toolsUsed.map(({ success }) => success)).to.deep.equal([true, false])
    expect(a.requests.map(({ tools }) => tools !== undefined)).to.deep.equal([true, false])
    await found.chat.reply({ message: 'hi', provider: 'a', toolBudget: 0 }, ctx)
    expect(a.requests[2]).to.not.have.property('tools')
  })

  it('is no more tool calls than its mode grants', async () => {
    const a = scripted([calls(['t'])])
    await using found = await startWith(a)
    const [granted, many] = [
      await found.chat.reply({ message: 'hi', provider: 'a', mode: 'explore' }, ctx),
      await found.chat.reply({ message: 'hi', provider: 'a', mode: 'explore', toolBudget: 1_000 }, ctx),
    ].map(({ toolsUsed }) => toolsUsed.length)
    expect(many).to.equal(granted)
  })

  it('is a number of tokens: the answer is cut to what is left, and a round that has none is not begun', async () => {
    const a = scripted([calls(['t']), says('so')], [{ id: 'm', output: 50 }])
    await using found = await startWith(a, { call: async () => ({ content: [{ type: 'text', text: 'x'.repeat(2_000) }] }) })
    const { code, details } = await codeThrown(found.chat.reply({ message: 'hi', provider: 'a', tokenBudget: 1_500 }, ctx))
    expect([code, a.requests.length]).to.deep.equal(['BUDGET_EXHAUSTED', 1])
    expect(details.needed).to.be.above(2_000)
    const needed = JSON.stringify(a.requests[0]!.messages).length
    await found.chat.reply({ message: 'hi', provider: 'a', tokenBudget: needed + 7, tools: [] }, ctx)
    expect(a.requests[1]?.maxTokens).to.equal(7)
    await found.chat.reply({ message: 'hi', provider: 'a', tokenBudget: 100_000, tools: [] }, ctx)
    expect(a.requests[2]?.maxTokens).to.equal(50)
    const none = await codeThrown(found.chat.reply({ message: 'hi', provider: 'a', tokenBudget: needed, tools: [] }, ctx))
    expect(none.code).to.equal('BUDGET_EXHAUSTED')
  })

  it('is a number of tokens for all rounds together', async () => {
    const dear = [{ type: 'usage', usage: { input: 9_000, output: 500 } } as const, ...calls(['t'])]
    const a = scripted([dear, says('so')])
    await using found = await startWith(a)
    const { code, details } = await codeThrown(found.chat.reply({ message: 'hi', provider: 'a', tokenBudget: 9_600 }, ctx))
    expect([code, details.spent, a.requests.length]).to.deep.equal(['BUDGET_EXHAUSTED', 9_500, 1])
  })

  it('ends a turn with what it has and says so, where a partial reply is wanted', async () => {
    const dear = (input: number, ...wanted: Parameters<typeof calls>) => [
      { type: 'text', text: 'first ' } as const,
      { type: 'usage', usage: { input, output: 500 } } as const,
      ...calls(...wanted),
    ]
    const ran: string[] = []
    const t: Partial<Tool> = {
      async call() {
        ran.push('t')
        return { content: [{ type: 'text', text: 'x' }] }
      },
    }
    // the next step does not fit into the rest
    await using later = await startWith(scripted([dear(9_000, ['t']), says('so')]), t)
    const reply = await later.chat.reply({ message: 'hi', provider: 'a', tokenBudget: 9_600, partial: true }, ctx)
    expect(reply).to.deep.include({ response: 'first ', status: 'completed' })
    expect(reply.partial!.budget).to.equal('tokens')
    expect(reply.partial!.reason).to.include('9600 tokens and has used 9500')
    const conversations = later.host.service(Conversations)
    expect((await conversations.get(reply.conversationId, ctx)).messages.at(-1)).to.include({
      content: 'first ',
      status: 'failed',
    })
    expect(ran).to.deep.equal(['t'])
    // the budget is used up: the calls of the answer do not run
    await using over = await startWith(scripted([dear(9_600, ['t']), says('so')]), t)
    const events = await over.stream({ message: 'hi', provider: 'a', tokenBudget: 9_600, partial: true })
    expect(events.map(({ type }) => type)).to.deep.equal(['start', 'token', 'end'])
    expect(events.at(-1)).to.deep.include({
      status: 'completed',
      partial: { budget: 'tokens', reason: 'the budget of tokens is used up' },
    })
    expect(ran).to.deep.equal(['t'])
    // the answer itself is cut
    const cut = scripted([
      [
        { type: 'text', text: 'half' },
        { type: 'finish', reason: 'length' },
      ],
    ])
    await using short = await startWith(cut)
    const needed = { message: 'hi', provider: 'a', tools: [], partial: true }
    expect((await short.chat.reply({ ...needed, tokenBudget: 10_000 }, ctx)).partial).to.include({ budget: 'tokens' })
    // a limit of the caller is no budget
    expect(await short.chat.reply({ ...needed, tokenBudget: 10_000, maxTokens: 5 }, ctx)).to.not.have.property('partial')
    // nothing was said yet
    const none = await codeThrown(short.chat.reply({ ...needed, tokenBudget: 1 }, ctx))
    expect(none.code).to.equal('BUDGET_EXHAUSTED')
    // an answer without calls is whole, even if it used up the budget
    await using whole = await startWith(scripted([says('all')]))
    expect(await whole.chat.reply({ ...needed, tokenBudget: 10_000 }, ctx)).to.not.have.property('partial')
  })

  it('holds with the tokens that the local provider counts', async () => {
    await using chatHost = await startChatHost()
    const turn = { message: 'word '.repeat(50), tools: [] }
    const { usage: free } = await chatHost.chat.reply(turn, ctx)
    const { usage, response } = await chatHost.chat.reply({ ...turn, tokenBudget: free.total - 20 }, ctx)
    expect([usage.total, response.endsWith('word')]).to.deep.equal([free.total - 20, true])
  })

  it('is that nothing is kept', async () => {
    const a = scripted([calls(['t']), says('so')])
    await using found = await startWith(a)
    const { response, conversationId } = await found.chat.reply({ message: 'hi', provider: 'a', keep: false }, ctx)
    expect([response, conversationId]).to.deep.equal(['so', ''])
    expect((await found.host.service(Conversations).list({ limit: 10 }, ctx)).conversations).to.deep.equal([])
    const both = await codeThrown(found.chat.reply({ message: 'hi', keep: false, conversationId: 'x' }, ctx))
    expect([both.code, both.details.field]).to.deep.equal(['INVALID_VALUE', 'keep'])
  })

  it('is a time of its own, shorter or longer than that of the configuration', async () => {
    await using chatHost = await startChatHost({ config: { chat: { timeout_ms: 50 } } })
    const { code, details } = await codeThrown(chatHost.chat.reply({ message: '/pace 1000\nso it is' }, ctx))
    expect([code, details.kind]).to.deep.equal(['MODEL_FAILED', 'timeout'])
    const { response } = await chatHost.chat.reply({ message: '/delay 100\nso it is', timeoutMs: 20_000 }, ctx)
    expect(response).to.equal('You said: so it is')
  })

  for (const [field, wish] of [
    ['tool_budget', { toolBudget: -1 }],
    ['token_budget', { tokenBudget: 1.5 }],
    ['timeout_ms', { timeoutMs: -1 }],
  ] as const)
    it(`is no ${field} that is no number of them`, async () => {
      await using found = await startWith(scripted([says('so')]))
      const { code, details } = await codeThrown(found.chat.reply({ message: 'hi', ...wish }, ctx))
      expect([code, details.field]).to.deep.equal(['INVALID_VALUE', field])
    })

  it('is a key, of which each tool call has its own: the same where the turn does the same again', async () => {
    const keys: (string | undefined)[] = []
    const call: Tool['call'] = async (_args, { idempotencyKey }) => (keys.push(idempotencyKey), { content: [] })
    const round = () => calls(['t', { n: 1 }], ['t', { n: 1 }], ['t', { n: 2 }])
    const a = scripted([round(), says('so'), round(), says('so'), round(), says('so')])
    await using found = await startWith(a, { call })
    for (const given of [{ idempotencyKey: 'k' }, { idempotencyKey: 'k' }, {}])
      await found.chat.reply({ message: 'hi', provider: 'a' }, { ...ctx, ...given })
    expect(keys.slice(0, 3)).to.deep.equal(keys.slice(3, 6))
    expect(new Set(keys.slice(0, 3)).size).to.equal(3)
    expect(keys.slice(6)).to.deep.equal([undefined, undefined, undefined])
  })
})
