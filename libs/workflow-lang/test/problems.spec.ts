import { expect } from 'chai'
import type { WorkflowDefinition } from '@svc/core/contracts'
import { problemsOf, readDefinition } from '../src/index.ts'
import { INVALID_DEFINITIONS, graph, node } from './invalid-definitions.ts'
import { CONTEXT } from './context.ts'

const problemLines = (text: string, context = CONTEXT) =>
  readDefinition(text, 'flows/sample.yaml', context).problems.map(({ line, path, message, hint }) =>
    [`${line} ${path}: ${message}`, ...(hint === undefined ? [] : [hint])].join(' | ')
  )
describe('a definition', () => {
  for (const [fault, text, ...expected] of INVALID_DEFINITIONS)
    it(`is refused with ${fault}`, () => {
      const found = problemLines(text)
      for (const [at, item] of expected.entries())
        if (typeof item === 'string') expect(found[at]).to.equal(item)
        else expect(found[at]).to.match(item)
      expect(found).to.have.lengthOf(expected.length)
    })

  it('reports all problems at once, in the order of their lines', () => {
    const found = problemLines(graph("  a: { type: giev, next: c }\n  b: { type: ask, if: 'x y' , timeout: long }\n", 'foo: 1\n'))
    expect(found.map(problemLine => problemLine.split(':')[0])).to.deep.equal([
      '2 foo',
      '4 nodes.a.type',
      '4 nodes.a.next',
      '5 nodes.b',
      '5 nodes.b.timeout',
      '5 nodes.b.if',
      '5 nodes.b.branches',
    ])
  })

  it('is taken with branches that are true, false and numbers, aliases, templates for any setting, and cycles', () => {
    const text = `name: sample
inputs: { type: object, properties: { n: { type: integer }, list: { type: array } } }
secrets: [TOKEN]
parameters: { p: { type: integer, default: 3, pattern: '(?=x)' } }
nodes:
  a: &a { type: count, width: '\${{ input.n }}', next: b, catch: oh }
  b: { type: ask, if: 'nodes.a.total > parameters.p && (input.n == null || has(nodes.c))', branches: { true: c, false: a } }
  c: { type: each, over: input.list, next: d, do: { nodes: { x: { type: give, value: '\${{ item.any + nodes.a.total + index }} \${{ secrets.TOKEN }}' } }, result: '\${{ nodes.x }}' } }
  d: { type: person, branches: { 1: e, 2: a }, compensate: { type: give, value: '\${{ [nodes.e, output, error.code] }}' } }
  e: { type: again, until: 'last == 3 && results.size() > 1', do: *a2, next: f }
  f: { type: both, bodies: { one: { type: give, value: 1 }, two: { type: give, value: '\${{ nodes.e }}' } } }
  oh: { type: give, value: '\${{ error.message }} $\${{ not.me }}' }
result: '\${{ nodes.?f.orValue(1) == 1 ? "a" : "b" }}'
`.replace('*a2', '{ type: give, value: 1 }')
    expect(problemLines(text)).to.deep.equal([])
    expect(readDefinition(text, 'x', CONTEXT).definition.nodes.d!.branches).to.deep.equal({ 1: 'e', 2: 'a' })
  })

  it('is taken with any branches of a node whose settings an expression makes', () => {
    const branches = 'branches: { red: end, blue: end }'
    for (const made of ["kind: '${{ input.kind }}'", "kind: choice, choices: ['${{ input.first }}']"])
      expect(problemLines(node(`type: choose, ${made}, ${branches}`))).to.deep.equal([])
  })

  it('has the same problems as data, without lines, and is not changed', () => {
    const definition = Object.freeze({ name: 'x', nodes: { a: { type: 'give' } } }) as unknown as WorkflowDefinition
    expect(problemsOf(definition, CONTEXT)).to.deep.equal([{ message: 'is required', path: 'nodes.a.value' }])
    expect(definition).to.deep.equal({ name: 'x', nodes: { a: { type: 'give' } } })
  })

  it('contains itself by way of others', () => {
    const other = (workflow: string) => ({ name: 'other', nodes: { b: { type: 'part', workflow } } })
    const context = { ...CONTEXT, definitionOf: (name: string) => (name === 'other' ? other('third') : other('sample')) }
    expect(problemLines(node('type: part, workflow: other'), context)).to.have.lengthOf(1)
    expect(problemLines(node('type: part, workflow: other'), context)[0]).to.contain('sample → other → third → sample')
  })
})
