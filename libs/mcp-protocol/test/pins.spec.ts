import { assessTools, isWanted, type ToolRules, withNewPins } from '@svc/mcp-protocol'
import { expect } from 'chai'

describe('the tools of a server that can be used', () => {
  it('follow names and patterns, where deny overrides allow', () => {
    const wanted = (name: string, rules: ToolRules) => isWanted(name, rules)
    expect(wanted('a', {})).to.equal(true)
    expect(wanted('a', { tools: ['b'] })).to.equal(false)
    for (const none of [{ tools: [] }, { allow: [] }]) expect(wanted('a', none), 'an empty list leaves none in').to.equal(false)
    expect(wanted('read_file', { allow: ['read_*', 'list'] })).to.equal(true)
    expect(wanted('reader', { allow: ['read_*'] })).to.equal(false)
    expect(wanted('read_file', { allow: ['read_*'], deny: ['*file'] })).to.equal(false)
    expect(wanted('abcabd', { allow: ['a*b*d'] })).to.equal(true)
    expect(wanted('ab', { allow: ['ab*b'] })).to.equal(false)
    expect(wanted('a'.repeat(64), { allow: [`${'*a'.repeat(30)}*b`] })).to.equal(false)
  })

  it('are pinned at first sight up to a limit, and the rest is not used', () => {
    const toolsOf = (count: number, description: string) =>
      Array.from({ length: count }, (_, at) => ({
        name: `t${at}`,
        description,
        inputSchema: {},
        hash: `${at}`,
        stripped: [],
        paramHeaders: [],
      }))
    for (const [tools, most] of [
      [toolsOf(4_000, ''), 3_000],
      [toolsOf(70, 'x'.repeat(250_000)), 68],
    ] as const) {
      const pins = withNewPins({}, tools)
      expect(Object.keys(pins)).to.have.length(most)
      const found = assessTools(tools, pins, {})
      expect(found.filter(({ status }) => status === 'good')).to.have.length(most)
      expect(found.at(-1)?.difference?.[0]).to.include('limit on the pinned tools')
      expect(withNewPins(pins, tools), 'nothing more').to.equal(pins)
    }
  })
})
