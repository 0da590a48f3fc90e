import { schema, systemContext } from '@svc/core'
import { answerOf, bytesOf, objectOf, toolOf } from '@svc/plugin-kit'
import { expect } from 'chai'

const tool = toolOf<{ readonly name: string }>({
  description: 'Greets.',
  category: 'text',
  effects: [],
  parameters: objectOf({ name: { type: 'string' }, title: { type: 'string' } }, ['title']),
  async call({ name }) {
    return answerOf(['Hello', name], { name })
  },
})

describe('the parts of tools', () => {
  it('make a tool whose arguments have a type', async () => {
    const answer = await tool.call({ name: 'Ada' }, systemContext(new AbortController().signal))
    expect(answer).to.deep.equal({ content: [{ type: 'text', text: 'Hello\nAda' }], structured: { name: 'Ada' } })
    expect(tool).to.deep.include({ description: 'Greets.', category: 'text', effects: [] })
  })

  it('do not begin a call that its caller has aborted', async () => {
    const error = await tool
      .call({ name: 'Ada' }, systemContext(AbortSignal.abort(new Error('enough'))))
      .catch((item: unknown) => item)
    expect(error).to.have.property('message', 'enough')
  })

  it('make a schema that asks for all but the optional, and takes nothing else', () => {
    const { check } = schema(tool.parameters)
    expect([check({ name: 'a' }), check({ name: 'a', title: 'b' })]).to.deep.equal([[], []])
    for (const bad of [{}, { title: 'b' }, { name: 'a', other: 1 }, { name: 1 }]) expect(check(bad)).to.not.deep.equal([])
  })

  it('answer in text alone where there is no data', () => {
    expect(answerOf('done')).to.deep.equal({ content: [{ type: 'text', text: 'done' }] })
  })
})

describe('a size', () => {
  it('is a number of bytes, with a binary unit', () => {
    expect(['1', '2K', '512M', '1G'].map(bytesOf)).to.deep.equal([1, 2_048, 536_870_912, 1_073_741_824])
    expect(['', '0', 'much', '-1', '1.5M', '1T', '1 M'].map(bytesOf)).to.deep.equal([0, 0, 0, 0, 0, 0, 0])
  })
})
