import { expect } from 'chai'
import { problemsOf, readDefinition } from '../src/index.ts'
import { CONTEXT } from './context.ts'

const problemLines = (text: string) =>
  readDefinition(text, 'sample.yaml', CONTEXT).problems.map(({ line, path, message, hint }) =>
    [`${line} ${path}: ${message}`, ...(hint === undefined ? [] : [hint])].join(' | ')
  )
const graph = (nodes: string, head = '') => `name: sample\n${head}nodes:\n${nodes}`

describe('a hostile definition', () => {
  const NESTED = {
    '[': '['.repeat(400_000),
    '{a:': '{a: '.repeat(200_000),
    '- ': '- '.repeat(400_000),
    '? ': '? '.repeat(400_000),
  }
  for (const [sign, text] of Object.entries(NESTED))
    it(`is refused at once when it nests ${sign} without end`, () => {
      expect(problemLines(text)).to.deep.equal(['1 : is nested too deeply | Write at most 100 levels'])
    })

  it('is refused beyond a mebibyte', () => {
    expect(problemLines(`# ${'x'.repeat(1_048_576)}`)[0]).to.match(/is longer than 1048576 bytes/)
  })

  it('is refused when its aliases stand for more than it may hold', () => {
    const lines = Array.from({ length: 12 }, (_, i) => `  v${i}: &v${i} [${`*v${i - 1}, `.repeat(10)}]`)
    const text = `name: sample\nx:\n  v-1: &v-1 [1]\n${lines.join('\n')}\n`
    expect(problemLines(text).join()).to.match(/is too large: more than 200000 values/)
  })

  it('is refused with bodies within bodies without end', () => {
    const deep = (levels: number) => {
      let body: object = { type: 'give', value: 1 }
      for (let i = 0; i < levels; i++) body = { type: 'both', bodies: { x: body } }
      return problemsOf({ name: 'deep', nodes: { a: body as never } }, CONTEXT).map(({ message }) => message)
    }
    expect(deep(30)).to.deep.equal(['has more than 20 nested bodies'])
    expect(deep(20)).to.deep.equal([])
    expect(deep(20_000)).to.deep.equal(['is nested too deeply: more than 200 levels'])
  })

  it('cannot take the names of what every object has', () => {
    expect(
      problemLines(graph("  constructor: { type: toString, next: hasOwnProperty, value: '${{ nodes.valueOf }}' }\n")).join('\n')
    ).to.match(/unknown node type "toString"[^]*node "hasOwnProperty" does not exist|node "valueOf" does not exist/)
  })

  it('has patterns that take linear time, in schemas and in defaults', () => {
    expect(
      problemLines(
        graph(
          '  a: { type: give, value: 1 }\n',
          `parameters: { p: { type: string, pattern: '^(a+)+$', default: '${'a'.repeat(5_000)}!' } }\n`
        )
      )
    ).to.have.lengthOf(1)
  }).timeout(2_000)

  it('of 10000 nodes is checked in the time that its text takes to be read', () => {
    const nodes = Array.from({ length: 10_000 }, (_, i) => [
      `n${i}`,
      {
        type: 'give',
        value: `\${{ [nodes.n${Math.max(0, i - 1)}, input.x${i}] }}`,
        next: `n${i + 1}`,
        catch: `n${(i * 7) % 10_000}`,
      },
    ])
    const before = process.cpuUsage()
    const found = problemsOf({ name: 'large', nodes: Object.fromEntries(nodes) }, CONTEXT)
    const { user, system } = process.cpuUsage(before)
    expect(found.map(({ path }) => path)).to.deep.equal(['nodes.n9999.next'])
    expect((user + system) / 1_000_000).to.be.below(10)
  }).timeout(60_000)
})
