import type { JsonSchema } from '@svc/core'
import { expect } from 'chai'
import { type DefinitionContext, readDefinition } from '../src/index.ts'
import { graph } from './invalid-definitions.ts'
import { CONTEXT } from './context.ts'

const WRITE: JsonSchema = {
  type: 'object',
  properties: {
    path: { type: 'string' },
    content: { type: 'string' },
    mode: { enum: ['new', 'append'], default: 'new' },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 3 },
    at: { $ref: '#/$defs/place' },
    owner: {
      type: 'object',
      properties: { name: { type: 'string' }, id: { type: 'integer' }, home: { $ref: '#/$defs/place' } },
      required: ['name', 'id'],
      additionalProperties: false,
    },
  },
  required: ['path', 'content', 'mode'],
  additionalProperties: false,
  $defs: { place: { type: 'object', properties: { line: { type: 'integer' } }, required: ['line'] } },
}
const ONE_OF: JsonSchema = {
  type: 'object',
  properties: { kind: { enum: ['a', 'b'] } },
  oneOf: [
    { properties: { kind: { const: 'a' } }, required: ['x'] },
    { properties: { kind: { const: 'b' } }, required: ['y'] },
  ],
}
const TAKES: Readonly<Record<string, JsonSchema>> = {
  write: WRITE,
  either: ONE_OF,
  itself: { type: 'object', properties: { child: { $ref: '#' }, n: { type: 'integer' } } },
  free: { type: 'object', properties: { n: { type: 'integer' } }, patternProperties: { '^x-(?=y)': { type: 'string' } } },
  broken: { type: 'object', properties: { n: { $ref: '#/$defs/none' } } },
  all: true,
}

const CALLS: DefinitionContext = {
  ...CONTEXT,
  typeOf: name =>
    name === 'call'
      ? {
          ...CONTEXT.typeOf('use')!,
          settings: { type: 'object', properties: { tool: { type: 'string' }, with: { type: 'object', default: {} } } },
          names: { tool: 'tool' },
          calledWith: { with: 'tool' },
        }
      : CONTEXT.typeOf(name),
  has: (kind, name) => kind === 'tool' && (name === 'unknown' || Object.hasOwn(TAKES, name)),
  takes: (kind, name) => (kind === 'tool' ? TAKES[name] : undefined),
}
const problemLines = (text: string) =>
  readDefinition(text, 'sample.yaml', CALLS).problems.map(({ line, path, message, hint }) =>
    [`${line} ${path}: ${message}`, ...(hint === undefined ? [] : [hint])].join(' | ')
  )
/** What is said of one call, without the place of the node. */
const call = (tool: string, args: string) =>
  problemLines(graph(`  a: { type: call, tool: ${tool}, with: ${args} }\n`)).map(problemLine =>
    problemLine.replace('3 nodes.a.with', '').replace(/^\./, '')
  )

describe('what a node calls a thing with', () => {
  it('is reported with all that cannot fit at once, each with its line', () => {
    const text = graph(
      '  a:\n    type: call\n    tool: write\n    with:\n      pth: x\n      content: 5\n    next: b\n  b: { type: call, tool: write }\n'
    )
    expect(problemLines(text)).to.deep.equal([
      '6 nodes.a.with.path: is required',
      '7 nodes.a.with.pth: is not a known key | did you mean "path"?',
      '8 nodes.a.with.content: must be string, was 5',
      '10 nodes.b.with.path: is required',
      '10 nodes.b.with.content: is required',
    ])
  })

  it('is reported with a value that is not allowed, however deep, and the keys there are', () => {
    const args = '{ path: x, content: y, mode: old, tags: [a, 3], at: {}, owner: { name: n, id: 1, zzz: 1 } }'
    expect(call('write', args)).to.deep.equal([
      'mode: must be one of "new", "append", was text "old"',
      'tags[1]: must be string, was 3',
      'at.line: is required',
      'owner.zzz: is not a known key | Use one of: name, id, home',
    ])
  })

  it('may be anything where an expression makes it, and below', () => {
    for (const args of [
      "'${{ input }}'",
      "{ path: '${{ input.path }}', content: '${{ input.n }}', mode: '${{ input.mode }}', tags: '${{ input.tags }}' }",
      "{ path: x, content: 'a ${{ input.n }}', owner: '${{ input.owner }}', at: { line: '${{ input.line }}' } }",
    ])
      expect(call('write', args), args).to.deep.equal([])
  })

  it('is reported with what no expression beside it can fix', () => {
    const args =
      "{ content: '${{ input.text }}', pth: x, tags: ['${{ input.tag }}', 3], owner: { name: '${{ input.who }}', home: { line: no } } }"
    expect(call('write', args)).to.deep.equal([
      'path: is required',
      'pth: is not a known key | did you mean "path"?',
      'tags[1]: must be string, was 3',
      'owner.id: is required',
      'owner.home.line: must be integer, was text "no"',
    ])
    expect(call('write', "{ path: x, content: ['${{ input.text }}'] }")).to.deep.equal(['content: must be string, was a list'])
  })

  it('is not refused for a choice that an expression makes', () => {
    expect(call('either', '{ kind: a }')).to.include('x: is required')
    expect(call('either', "{ kind: '${{ input.kind }}', y: 1 }")).to.deep.equal([])
    expect(call('either', "{ kind: c, y: '${{ input.y }}' }")).to.deep.equal(['kind: must be one of "a", "b", was text "c"'])
  })

  it('is not looked into where its schema cannot be, or is not known', () => {
    expect(call('itself', "{ n: '${{ input.n }}', child: { n: x } }")).to.deep.equal([])
    expect(call('free', '{ n: 1, z: 3 }')).to.deep.equal([])
    for (const tool of ['broken', 'all', 'unknown', "'${{ input.tool }}'"]) expect(call(tool, '{ n: x }'), tool).to.deep.equal([])
  })

  it('is reported once if it is not an object', () => {
    expect(call('write', '5')).to.deep.equal([': must be object, was 5'])
    expect(call('write', 'null')).to.deep.equal([': must be object, was null'])
  })
})
