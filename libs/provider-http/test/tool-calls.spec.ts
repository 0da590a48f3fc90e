import type { ModelEvent } from '@svc/core/contracts'
import { ToolCalls, type ToolCallPiece } from '@svc/provider-http'
import { expect } from 'chai'

function eventsOf(pieces: readonly (readonly [number | undefined, ToolCallPiece])[]): ModelEvent[] {
  const events: ModelEvent[] = []
  const emit = (event: ModelEvent) => void events.push(event)
  const calls = new ToolCalls('acme', { deltas: true })
  for (const [index, piece] of pieces) calls.add(index, piece, emit)
  calls.emit(emit)
  return events
}

describe('the deltas of tool calls', () => {
  it('wait for the name, have one id, and join to the arguments', () => {
    const events = eventsOf([
      [1, { text: '{"a"' }],
      [0, { id: 'x', tool: 'news' }],
      [1, { tool: 'weather', text: ':1' }],
      [1, { id: 'late', text: '}' }],
    ])
    const deltas = events.filter(event => event.type === 'tool_call_delta')
    const calls = events.filter(event => event.type === 'tool_call')
    expect(deltas.map(({ index, tool, text }) => [index, tool, text])).to.deep.equal([
      [1, 'news', ''],
      [0, 'weather', '{"a":1'],
      [0, 'weather', '}'],
    ])
    expect(calls.map(({ tool, arguments: args }) => [tool, args])).to.deep.equal([
      ['weather', { a: 1 }],
      ['news', {}],
    ])
    expect(new Set(deltas.filter(({ index }) => index === 0).map(({ id }) => id))).to.deep.equal(new Set([calls[0]?.id]))
    expect(deltas.find(({ index }) => index === 1)?.id).to.equal('x')
  })

  it('have different ids for calls that a server gives the same id', () => {
    const events = eventsOf([
      [0, { id: 'same', tool: 'a', text: '{}' }],
      [1, { id: 'same', tool: 'b', text: '{}' }],
    ])
    const ids = events.flatMap(event => (event.type === 'tool_call' ? event.id : []))
    expect(new Set(ids).size).to.equal(2)
    expect(events.flatMap(event => (event.type === 'tool_call_delta' ? event.id : []))).to.deep.equal(ids)
  })
})
