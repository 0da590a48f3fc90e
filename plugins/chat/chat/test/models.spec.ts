import { definePlugin, type PluginRef, type Scope, svcError } from '@svc/core'
import {
  ModelCalls,
  ModelAliases,
  type ModelCall,
  type ModelDone,
  type ModelFailed,
  Providers,
  Selection,
  type TurnRequest,
  Tools,
} from '@svc/core/contracts'
import { item, testContext } from '@svc/testing'
import { expect } from 'chai'
import { calls, startChatHost, codeThrown, says, scripted, tool } from './chat-host.ts'

const tapping = (setup: (scope: Scope) => void): PluginRef => ({
  name: 'tapping',
  use: definePlugin({ setup: scope => setup(scope as Scope) }),
})
const fails =
  (kind = 'overloaded', more = {}) =>
  () => {
    throw svcError('MODEL_FAILED', `it is ${kind}`, { details: { kind, retryable: true, ...more } })
  }
const whom = ({ selected }: ModelCall) => `${selected.provider}/${selected.model}`
const ask = (more: Partial<TurnRequest> = {}): TurnRequest => ({ message: 'hi', provider: 'a', ...more })

describe('which model a turn asks', () => {
  it('goes on with another model that a tap of modelCall names, in later rounds too, and says who answered', async () => {
    const [a, b] = [scripted([says('a')]), scripted([calls(['t']), says('b')])]
    const seen: string[] = []
    const tap = tapping(scope =>
      scope.tap(ModelCalls.hooks.modelCall, call => {
        seen.push(`${whom(call)} round ${call.round} attempt ${call.attempt}`)
        return call.selected.provider === 'a' ? { provider: 'b', model: 'm' } : undefined
      })
    )
    await using chatHost = await startChatHost({
      give: [tap, item(Providers, 'a', a), item(Providers, 'b', b), item(Tools, 't', tool({}))],
    })
    expect(await chatHost.chat.reply(ask(), testContext())).to.include({ response: 'b', provider: 'b' })
    expect(seen).to.deep.equal(['a/m round 1 attempt 1', 'b/m round 1 attempt 1', 'b/m round 2 attempt 1'])
    expect([a.requests.length, b.requests.length]).to.deep.equal([0, 2])
  })

  it('gives up taps that send it from model to model for ever', async () => {
    const give = ['a', 'b'].map(name => item(Providers, name, scripted([says(name)])))
    const tap = tapping(scope =>
      scope.tap(ModelCalls.hooks.modelCall, ({ selected }) => ({ provider: selected.provider === 'a' ? 'b' : 'a', model: 'm' }))
    )
    await using chatHost = await startChatHost({ give: [tap, ...give] })
    const { code, message } = await codeThrown(chatHost.chat.reply(ask(), testContext()))
    expect([code, message]).to.deep.equal(['MODEL_FAILED', 'provider "a" was replaced too many times by plugins'])
  })

  it('gives up taps that try again for ever', async () => {
    const a = scripted([fails()])
    const tap = tapping(scope => scope.tap(ModelCalls.hooks.modelFailed, () => ({ waitMs: 0 })))
    await using chatHost = await startChatHost({ give: [tap, item(Providers, 'a', a)] })
    expect((await codeThrown(chatHost.chat.reply(ask(), testContext()))).code).to.equal('MODEL_FAILED')
    expect(a.requests).to.have.length(100)
  })

  it('takes a failure that a tap of modelCall tells as any other, without asking anybody', async () => {
    const [a, b] = [scripted([says('a')]), scripted([says('b')])]
    const done: ModelDone[] = []
    const failure = { kind: 'overloaded', retryable: true } as const
    const tap = tapping(scope => {
      scope.tap(ModelCalls.hooks.modelCall, call => (call.selected.provider === 'a' ? { failure, message: 'open' } : undefined))
      scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'b', model: 'm' }))
      scope.tap(ModelCalls.hooks.modelDone, entry => void done.push(entry))
    })
    await using chatHost = await startChatHost({ give: [tap, item(Providers, 'a', a), item(Providers, 'b', b)] })
    expect(await chatHost.chat.reply(ask(), testContext())).to.include({ response: 'b', provider: 'b' })
    expect(a.requests).to.deep.equal([])
    expect(
      done.map(modelDone => [
        whom(modelDone),
        modelDone.answered,
        modelDone.failure?.kind,
        modelDone.events?.length,
        modelDone.tried.length,
      ])
    ).to.deep.equal([
      ['a/m', true, 'overloaded', undefined, 0],
      ['b/m', undefined, undefined, 3, 1],
    ])
  })

  it('tells the tries of each model and those given up before', async () => {
    const give = ['a', 'b', 'c'].map(name => item(Providers, name, scripted(name === 'c' ? [says('c')] : [fails()])))
    const next: Record<string, string> = { a: 'b', b: 'c' }
    const seen: unknown[] = []
    const tap = tapping(scope => {
      scope.tap(
        ModelCalls.hooks.modelCall,
        call => void seen.push([whom(call), call.attempt, call.tried.map(entry => entry.provider)])
      )
      scope.tap(ModelCalls.hooks.modelFailed, ({ selected, attempt }) =>
        attempt < 2 ? { waitMs: 0 } : { provider: next[selected.provider]!, model: 'm' }
      )
    })
    await using chatHost = await startChatHost({ give: [tap, ...give] })
    expect(await chatHost.chat.reply(ask(), testContext())).to.include({ provider: 'c' })
    expect(seen).to.deep.equal([
      ['a/m', 1, []],
      ['a/m', 2, []],
      ['b/m', 1, ['a']],
      ['b/m', 2, ['a']],
      ['c/m', 1, ['a', 'b']],
    ])
  })

  it('takes a provider or model that is not there as one that failed', async () => {
    const failed: ModelFailed[] = []
    const next = [
      { provider: 'nobody', model: 'm' },
      { provider: 'b', model: 'nothing' },
      { provider: 'b', model: 'm' },
    ]
    const tap = tapping(scope =>
      scope.tap(ModelCalls.hooks.modelFailed, entry => {
        failed.push(entry)
        return next.shift()
      })
    )
    const give = [item(Providers, 'a', scripted([fails()])), item(Providers, 'b', scripted([says('b')]))]
    await using chatHost = await startChatHost({ give: [tap, ...give] })
    expect(await chatHost.chat.reply(ask(), testContext())).to.include({ response: 'b' })
    expect(failed.map(modelFailed => [whom(modelFailed), modelFailed.message])).to.deep.equal([
      ['a/m', 'it is overloaded'],
      ['nobody/m', 'provider "nobody" is not available'],
      ['b/nothing', 'provider "b" has no model "nothing"'],
    ])
  })

  it('takes an alias of the provider that a tap names', async () => {
    const tap = tapping(scope => scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'b', model: 'fast' })))
    const give = [item(Providers, 'a', scripted([fails()])), item(Providers, 'b', scripted([says('b')]))]
    await using chatHost = await startChatHost({
      give: [tap, ...give, item(ModelAliases, 'fast', { provider: 'b', model: 'm' })],
    })
    expect(await chatHost.chat.reply(ask(), testContext())).to.include({ provider: 'b', model: 'm' })
  })

  it('tells modelDone what was answered, whole: text and reasoning in one piece each', async () => {
    const done: ModelDone[] = []
    const a = scripted([
      [
        { type: 'reasoning', text: '' },
        { type: 'reasoning', text: 'let me ' },
        { type: 'reasoning', text: 'see' },
        { type: 'reasoning', text: '', providerData: 'signed' },
        { type: 'text', text: 'so ' },
        { type: 'text', text: 'be it' },
        { type: 'usage', usage: { input: 3, output: 2 } },
        { type: 'finish', reason: 'stop' },
      ],
    ])
    const tap = tapping(scope => scope.tap(ModelCalls.hooks.modelDone, entry => void done.push(entry)))
    await using chatHost = await startChatHost({ give: [tap, item(Providers, 'a', a)] })
    await chatHost.stream(ask())
    expect(done[0]?.events).to.deep.equal([
      { type: 'reasoning', text: 'let me see', providerData: 'signed' },
      { type: 'text', text: 'so be it' },
      { type: 'usage', usage: { input: 3, output: 2 } },
      { type: 'finish', reason: 'stop' },
    ])
  })

  it('asks a provider for its models once a turn: the selection hands on what it read', async () => {
    const a = scripted([calls(['t']), says('done')])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), item(Tools, 't', tool({}))] })
    await chatHost.chat.reply(ask({ model: 'm' }), testContext())
    expect([a.listed, a.requests.length]).to.deep.equal([1, 2])
    expect(await chatHost.host.service(Selection).select({ provider: 'a' }, testContext())).to.deep.include({ info: { id: 'm' } })
  })

  it('asks another provider although the first cannot even tell its models', async () => {
    const down = scripted([says('a')], [], { models: fails('network') })
    const tap = tapping(scope => scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'b', model: 'm' })))
    await using chatHost = await startChatHost({
      give: [tap, item(Providers, 'a', down), item(Providers, 'b', scripted([says('b')]))],
    })
    expect(await chatHost.chat.reply(ask({ model: 'm' }), testContext())).to.include({ response: 'b', provider: 'b' })
  })
})

describe('what a model can do', () => {
  const plain = { id: 'm', output: 10, features: { tool_calling: false }, temperature: false }
  const profiles = 'default: p\nprofiles:\n  p: { temperature: 0.5, max_tokens: 50 }\n'
  const tools = item(Tools, 't', tool({}))

  it('refuses what a caller asks and the model cannot do, and names the field', async () => {
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', scripted([says('a')], [plain])), tools] })
    for (const [asked, field] of [
      [{ tools: ['t'] }, 'tools'],
      [{ temperature: 0 }, 'temperature'],
      [{ maxTokens: 11 }, 'max_tokens'],
    ] as const) {
      const { code, details } = await codeThrown(chatHost.chat.reply(ask(asked), testContext()))
      expect([code, details.field]).to.deep.equal(['INVALID_VALUE', field])
    }
  })

  it('leaves out what a profile or mode asks and the model cannot do', async () => {
    const a = scripted([says('a')], [plain])
    await using chatHost = await startChatHost({ give: [item(Providers, 'a', a), tools], profiles })
    await chatHost.chat.reply(ask(), testContext())
    expect(a.requests[0]).to.not.have.any.keys('tools', 'temperature')
    expect(a.requests[0]).to.include({ maxTokens: 10 })
  })

  it('is looked at anew for a model that answers in the stead of another', async () => {
    const [a, b] = [scripted([calls(['t']), fails()]), scripted([says('b')], [plain])]
    const tap = tapping(scope => scope.tap(ModelCalls.hooks.modelFailed, () => ({ provider: 'b', model: 'm' })))
    await using chatHost = await startChatHost({ give: [tap, item(Providers, 'a', a), item(Providers, 'b', b), tools] })
    const reply = await chatHost.chat.reply(ask({ temperature: 0.3, maxTokens: 40 }), testContext())
    expect(reply).to.include({ response: 'b', provider: 'b' })
    expect(b.requests[0]).to.not.have.any.keys('tools', 'temperature')
    expect(b.requests[0]).to.include({ maxTokens: 10 })
    expect(b.requests[0]?.messages.map(message => [message.role, message.parts])).to.deep.equal([
      ['user', [{ type: 'text', text: 'hi' }]],
      ['assistant', [{ type: 'text', text: '[t {}]' }]],
      ['user', [{ type: 'text', text: '[t answered]\ndone' }]],
    ])
  })

  it('makes a model that calls no tools fail where a caller asked for some by name', async () => {
    const [a, b] = [scripted([fails()]), scripted([says('b')], [plain])]
    const tap = tapping(scope =>
      scope.tap(ModelCalls.hooks.modelFailed, entry =>
        entry.selected.provider === 'a' ? { provider: 'b', model: 'm' } : undefined
      )
    )
    await using chatHost = await startChatHost({ give: [tap, item(Providers, 'a', a), item(Providers, 'b', b), tools] })
    const { code, message } = await codeThrown(chatHost.chat.reply(ask({ tools: ['t'] }), testContext()))
    expect([code, message]).to.deep.equal(['MODEL_FAILED', 'the model m does not support tools'])
  })
})
