import { expect } from 'chai'
import type { WorkflowDefinition } from '@svc/core/contracts'
import { drawSvg, drawTerminal, stateOf } from '../src/index.ts'

const REVIEW: WorkflowDefinition = {
  name: 'review',
  nodes: {
    fetch: { type: 'http', next: 'enough', catch: 'sorry' },
    enough: { type: 'condition', if: 'true', branches: { true: 'each', false: 'fetch' } },
    each: {
      type: 'map',
      over: 'input.x',
      do: { nodes: { look: { type: 'agent', next: 'note' }, note: { type: 'transform' } } },
      next: 'both',
    },
    both: { type: 'parallel', bodies: { tests: { type: 'tool' }, lint: { type: 'tool' } }, next: 'ask' },
    ask: { type: 'human', branches: { approved: 'merge', rejected: 'fetch' } },
    merge: { type: 'tool', compensate: { type: 'tool' } },
    sorry: { type: 'transform' },
  },
}
const STEPS = (
  [
    ['fetch', 'failed'],
    ['fetch#2', 'completed'],
    ['enough', 'completed'],
    ['each', 'completed'],
    ['each/0/look', 'completed'],
    ['each/1/look', 'cancelled'],
    ['both', 'running'],
    ['both/lint/do', 'running'],
    ['undo/merge/do', 'running'],
  ] as const
).map(([step, status]) => ({ step, status }))

const DRAWN = `review
● fetch (http)
│ ├─ → enough
│ ├─ on failure → sorry
│
● enough (condition)
│ ├─ true → each
│ ├─ false ↺ fetch
│
● each (map)
│ ┌ do
│ │ ● look (agent)
│ │ ↓
│ │ ● note (transform)
│ └
↓
● both (parallel)
│ ┌ tests
│ │ ● do (tool)
│ └
│ ┌ lint
│ │ ● do (tool)
│ └
↓
● ask (human)
│ ├─ approved → merge
│ ├─ rejected ↺ fetch
│
● merge (tool)
  ┌ compensate
  │ ● do (tool)
  └
● sorry (transform)`

describe('a drawing', () => {
  it('in the terminal shows ways, branches, failures, cycles and what is inside', () => {
    expect(drawTerminal(REVIEW)).to.equal(DRAWN)
  })

  it('shows how the steps of a run stand, in signs and words', () => {
    const lines = drawTerminal(REVIEW, { state: stateOf(REVIEW, STEPS) })
      .split('\n')
      .filter(line => line.includes('●'))
    expect(lines).to.deep.equal([
      '● ✓ fetch (http) done',
      '● ✓ enough (condition) done',
      '● ✓ each (map) done',
      '│ │ ● – look (agent) cancelled',
      '│ │ ●   note (transform)',
      '● ▶ both (parallel) running',
      '│ │ ●   do (tool)',
      '│ │ ● ▶ do (tool) running',
      '●   ask (human)',
      '●   merge (tool)',
      '  │ ●   do (tool)',
      '●   sorry (transform)',
    ])
  })

  it('in the terminal keeps to its width, and says nothing to the terminal', () => {
    const name = `a\u001b[31m\u202e${'x'.repeat(200)}`
    const text = drawTerminal({ name, nodes: { [name]: { type: name, next: name } } }, { width: 40 })
    expect(text.split('\n').map(line => Array.from(line).length > 40)).to.not.include(true)
    expect(text).to.not.match(/[^\P{C}\n]/u)
  })

  it('as SVG shows the same, with a legend, escaped, and loads nothing', () => {
    const text = drawSvg({ ...REVIEW, name: `<script>alert("1")</script>&\u0001` }, { state: stateOf(REVIEW, STEPS) })
    expect(text)
      .to.match(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
      .and.contain('&lt;script&gt;')
      .and.not.match(/<script|<image|href=|@import/)
      .and.not.contain('\u0001')
    expect(text.match(/class="box/g)).to.have.lengthOf(12)
    expect(text.match(/class="frame"/g)).to.have.lengthOf(4)
    expect(text).to.contain('class="box running"').and.contain('class="edge catch"').and.contain('prefers-color-scheme: dark')
    for (const word of ['done', 'running', 'cancelled'])
      expect(text).to.match(new RegExp(`<tspan class="sign">.</tspan> ${word}`))
  })

  it('of a definition with faults shows ways to what is not there as they are written', () => {
    const nodes = { a: { type: 'condition', branches: { true: 'nowhere', false: 'end' } }, b: { type: 'give', next: 'nowhere' } }
    expect(drawTerminal({ name: 'faulty', start: 'a', nodes })).to.equal(`faulty
● a (condition)
│ ├─ true → nowhere
│ ├─ false → end
│
● nowhere (no such node)
● b (give)
  ├─ ↺ nowhere`)
    expect(drawSvg({ name: 'faulty', nodes })).to.contain('no such node')
  })

  it('of more than can be drawn says so', () => {
    const nodes = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`n${i}`, { type: 'give', next: `n${i + 1}` }]))
    expect(drawTerminal({ name: 'large', nodes })).to.match(/n1999 [^]*… only the first 2000 nodes are drawn$/)
    expect(() => drawSvg({ name: 'large', nodes }))
      .to.throw()
      .with.property('code', 'GRAPH_TOO_LARGE')
  })
})
