import { expect } from 'chai'
import { createEventParser, eventFrame, HEARTBEAT, readEvents, type ServerEvent } from '@svc/provider-http/sse'

const bytes = (text: string) => new TextEncoder().encode(text)
const parse = (text: string) => createEventParser().push(bytes(text))

describe('an event stream', () => {
  it('is written in the order id, event, data, with a blank line', () => {
    expect(eventFrame(3, 'token', '{"a":1}')).to.equal('id: 3\nevent: token\ndata: {"a":1}\n\n')
  })

  it('reads what it writes, and skips heartbeats', () => {
    const text = eventFrame(1, 'start', '{}') + HEARTBEAT + eventFrame(2, 'end', '{"x":"ä"}')
    expect(parse(text)).to.deep.equal([
      { event: 'start', data: '{}', id: '1' },
      { event: 'end', data: '{"x":"ä"}', id: '2' },
    ])
  })

  it('is the same however its bytes are cut, with each kind of line end', () => {
    for (const end of ['\n', '\r\n', '\r']) {
      const all = bytes(
        ['event: a', 'data: ä€😀', 'data: second', '', ': comment', 'data:x', 'id: 7', 'retry: 50', '', ''].join(end)
      )
      for (let size = 1; size <= all.length; size++) {
        const parser = createEventParser()
        const events: ServerEvent[] = []
        for (let at = 0; at < all.length; at += size) events.push(...parser.push(all.subarray(at, at + size)))
        expect(events, `${JSON.stringify(end)} by ${size}`).to.deep.equal([
          { event: 'a', data: 'ä€😀\nsecond' },
          { event: 'message', data: 'x', id: '7', retry: 50 },
        ])
      }
    }
  })

  it('takes at most one blank after the colon, and a field without one as empty', () => {
    expect(parse('data:  two\ndata\n\n')).to.deep.equal([{ event: 'message', data: ' two\n' }])
  })

  it('ignores unknown fields, a retry that is no number, and events without data', () => {
    expect(parse('event: a\nid: 1\n\nfoo: bar\nretry: soon\ndata: x\n\n')).to.deep.equal([{ event: 'message', data: 'x' }])
  })

  it('gives up an event that is too large, in whatever pieces it comes', () => {
    const parser = createEventParser(10)
    expect(parser.push(bytes('data: 1234\n\n'))).to.have.lengthOf(1)
    expect(() => parser.push(bytes('data: 123')) && parser.push(bytes('4567')))
      .to.throw(/10 characters/)
      .with.property('code', 'EVENT_TOO_LARGE')
    const endless = createEventParser(100)
    expect(() => {
      for (let at = 0; at < 1_000; at++) endless.push(bytes('data: 1\n'))
    }).to.throw(/100 characters/)
  })

  it('is read from a body to its end, without what is not finished', async () => {
    const body = new Blob(['data: 1\n\ndata: 2\n\ndata: unfinished']).stream()
    const events = await Array.fromAsync(readEvents(body))
    expect(events.map(event => event.data)).to.deep.equal(['1', '2'])
  })

  it('lets go of the body when its reader stops', async () => {
    let closed = false
    async function* body() {
      try {
        for (;;) yield bytes('data: x\n\n')
      } finally {
        closed = true
      }
    }
    for await (const event of readEvents(body())) {
      expect(event.data).to.equal('x')
      break
    }
    expect(closed).to.equal(true)
  })
})
