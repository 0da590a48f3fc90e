import type { CompletionContext } from '@codemirror/autocomplete'
import { json } from '@codemirror/lang-json'
import { ensureSyntaxTree } from '@codemirror/language'
import { EditorState } from '@codemirror/state'
import { expect } from 'chai'
import { completionsOf } from '../page/src/complete.ts'
import { JSON_SCHEMA } from '../page/src/schema-keywords.ts'

const NODE = {
  type: 'object',
  required: ['type'],
  properties: { type: { enum: ['fetch', 'map'] } },
  allOf: [
    {
      if: { properties: { type: { const: 'fetch' } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a word of JSON Schema
      then: { properties: { type: {}, url: { description: 'Where to' }, retry: { type: 'boolean' } }, required: ['url'] },
    },
    {
      if: { properties: { type: { const: 'map' } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a word of JSON Schema
      then: { properties: { items: {}, do: { anyOf: [{ $ref: '#/$defs/graph' }, { $ref: '#/$defs/node' }] } } },
    },
  ],
}
const GRAPH = { type: 'object', properties: { nodes: { additionalProperties: { $ref: '#/$defs/node' } } } }
const SCHEMA = {
  properties: { name: {}, nodes: { additionalProperties: { $ref: '#/$defs/node' } } },
  $defs: { node: NODE, graph: GRAPH },
}

/** What is offered at the mark `|`. */
function offered(text: string, language: 'yaml' | 'json' = 'yaml', schema: object = SCHEMA): readonly string[] {
  const pos = text.indexOf('|')
  const state = EditorState.create({ doc: text.replace('|', ''), extensions: language === 'json' ? json() : [] })
  ensureSyntaxTree(state, state.doc.length)
  const found = completionsOf(schema, language, { state, pos, explicit: true } as CompletionContext)
  return (found?.options ?? []).map(({ label }) => label).toSorted()
}

describe('the completion of the editor of the console', () => {
  it('offers the keys of the document that are not used yet', () => {
    expect(offered('|')).to.deep.equal(['name', 'nodes'])
    expect(offered('name: x\n|')).to.deep.equal(['nodes'])
  })

  it('offers the types of nodes, and the settings of the type that stands beside', () => {
    expect(offered('nodes:\n  one:\n    type: |')).to.deep.equal(['fetch', 'map'])
    expect(offered('nodes:\n  one:\n    type: fetch\n    |')).to.deep.equal(['retry', 'url'])
    expect(offered('nodes:\n  one:\n    |\n    type: map')).to.deep.equal(['do', 'items'])
    expect(offered('nodes:\n  one:\n    type: fetch\n    retry: |')).to.deep.equal(['false', 'true'])
  })

  it('knows the nodes in the body of a node', () => {
    const body = 'nodes:\n  each:\n    type: map\n    do:\n      nodes:\n        inner:\n          type: fetch\n          |'
    expect(offered(body)).to.deep.equal(['retry', 'url'])
    expect(offered('nodes:\n  each:\n    do:\n      |\n    type: map')).to.deep.equal(['nodes', 'type'])
  })

  it('offers nothing where the schema knows nothing', () => {
    expect(offered('name: |')).to.deep.equal([])
    expect(offered('unknown:\n  |')).to.deep.equal([])
    expect(offered('{ "name": | }', 'json')).to.deep.equal([])
    expect(offered('|', 'json')).to.deep.equal([])
  })

  it('offers the keys and values of JSON, also in a text that is not finished', () => {
    const json = (text: string) => offered(text, 'json')
    expect(json('{ | }')).to.deep.equal(['"name"', '"nodes"'])
    expect(json('{ "na|')).to.deep.equal(['"name"', '"nodes"'])
    expect(json('{ "name": "x", "|" }')).to.deep.equal(['"nodes"'])
    expect(json('{ "nodes": { "one": { "type": | } } }')).to.deep.equal(['"fetch"', '"map"'])
    expect(json('{ "nodes": { "one": { "type": "fe|')).to.deep.equal(['"fetch"', '"map"'])
    expect(json('{ "nodes": { "one": { "type": "fetch", | } } }')).to.deep.equal(['"retry"', '"url"'])
    expect(json('{ "nodes": { "one": { "type": "fetch", "retry": | } } }')).to.deep.equal(['false', 'true'])
    const inner = '"do": { "nodes": { "inner": { "type": "fetch", "|" } } }'
    expect(json(`{ "nodes": { "each": { "type": "map", ${inner} } } }`)).to.deep.equal(['"retry"', '"url"'])
  })

  it('offers the keywords of a JSON Schema at every depth', () => {
    const json = (text: string) => offered(text, 'json', JSON_SCHEMA)
    const all = json('{ | }')
    expect(all).to.include.members(['"type"', '"properties"', '"enum"', '"$defs"'])
    expect(json('{ "properties": { "type": { | } } }')).to.deep.equal(all)
    expect(json('{ "anyOf": [{ "items": { "additionalProperties": { | } } }] }')).to.deep.equal(all)
    expect(json('{ "properties": { | } }')).to.deep.equal([])
    const types = ['"array"', '"boolean"', '"integer"', '"null"', '"number"', '"object"', '"string"']
    expect(json('{ "type": | }')).to.deep.equal(types)
    expect(json('{ "type": ["string", |] }')).to.deep.equal(types)
  })

  it('ends soon with the schema of a hostile tool, whose parts all refer to each other', () => {
    const all = Array.from({ length: 200 }, (_, at) => ({ $ref: `#/$defs/d${at}` }))
    const part = { anyOf: all, oneOf: all, properties: { deep: { anyOf: all } } }
    const hostile = {
      anyOf: all,
      properties: { deep: { anyOf: all } },
      $defs: Object.fromEntries(all.map((_, at) => [`d${at}`, part])),
    }
    const began = performance.now()
    expect(offered('{ "deep": { "deep": { "deep": { | } } } }', 'json', hostile)).to.deep.equal(['"deep"'])
    expect(offered('deep:\n  deep:\n    |', 'yaml', hostile)).to.deep.equal(['deep'])
    expect(performance.now() - began).to.be.below(5_000)
  })
})
