import type { Provider } from '@svc/core/contracts'
import { testContext } from '@svc/testing'
import { expect } from 'chai'
import { tellModels } from '../src/selection.ts'

const silent = (heard: AbortSignal[]): Provider => ({
  features: { tool_calling: true, streaming: true, vision: false },
  models: ({ signal }) => {
    heard.push(signal)
    return new Promise(() => undefined)
  },
  countTokens: async () => 1,
  async *chat() {
    yield { type: 'finish', reason: 'stop' }
  },
  probe: async () => undefined,
})

describe('the models of a provider', () => {
  it('that never lists them is its failure, and its request is aborted', async () => {
    const heard: AbortSignal[] = []
    const failure: unknown = await tellModels('mute', silent(heard), testContext(), 20).catch((error: unknown) => error)
    expect(failure).to.include({ code: 'MODEL_FAILED' })
    expect(failure).to.have.property('details').that.includes({ kind: 'timeout', provider: 'mute' })
    expect(heard[0]?.aborted).to.equal(true)
  })

  it('are asked for once by all turns of a moment; a failure is not kept', async () => {
    let asked = 0
    const provider: Provider = {
      ...silent([]),
      models: async () => {
        if (++asked === 1) throw new Error('away')
        return { models: [], open: true }
      },
    }
    const failure: unknown = await tellModels('one', provider, testContext()).catch((error: unknown) => error)
    expect(failure).to.include({ message: 'away' })
    expect(await tellModels('one', provider, testContext())).to.equal(await tellModels('one', provider, testContext()))
    expect(asked).to.equal(2)
  })
})
