import { APP_TYPE, assessTools, hashOf, MAX_APP, readApp, readTool, readToolUi, withNewPins } from '@svc/mcp-protocol'
import { expect } from 'chai'

const BOUNDS = { schemaDepth: 64, toolBytes: 262_144 }
const listed = (ui?: unknown) => {
  const tool = readTool({ name: 't', inputSchema: { type: 'object' }, ...(ui === undefined ? {} : { _meta: { ui } }) }, BOUNDS)
  if (typeof tool === 'string') throw new Error(tool)
  return tool
}

describe('the app of a tool', () => {
  it('is read from _meta.ui, without what has no effect', () => {
    const both = ['model', 'app']
    expect(readToolUi({ ui: { resourceUri: 'ui://a/b' } })).to.deep.equal({ ui: { resourceUri: 'ui://a/b', visibility: both } })
    expect(readToolUi({ ui: { visibility: ['app', 'x', 'app'] } })).to.deep.equal({ ui: { visibility: ['app'] } })
    expect(readToolUi({ ui: { visibility: [] } })).to.deep.equal({ ui: { visibility: [] } })
    expect(readToolUi({ ui: { resourceUri: 'ui://a', visibility: 'app' } }).ui?.visibility).to.deep.equal(both)
    const bad = [
      'file:///etc/passwd',
      'https://x.example',
      'javascript:alert(1)',
      ' ui://a',
      'UI://a',
      'ui:a',
      'ui://',
      'ui://a b',
      'ui://a\u202E',
      'ui://a\nb',
      `ui://${'a'.repeat(2_000)}`,
      1,
      null,
      ['ui://a'],
      {},
    ]
    for (const resourceUri of bad)
      expect(readToolUi({ ui: { resourceUri } }), JSON.stringify(resourceUri).slice(0, 40)).to.deep.equal({})
    for (const meta of [undefined, null, 'x', [], { ui: 'x' }, { ui: [] }, { ui: null }])
      expect(readToolUi(meta)).to.deep.equal({})
  })

  it('is a part of the pin, and a tool without one keeps its hash', () => {
    expect(listed().hash).to.equal(hashOf({ name: 't', description: '', inputSchema: { type: 'object' } }))
    expect(listed({}).hash).to.equal(listed().hash)
    expect(listed({ visibility: ['app', 'model'] }).hash).to.equal(listed().hash)
    const before = listed({ resourceUri: 'ui://a/1' })
    const pins = withNewPins({}, [before])
    expect(assessTools([before], pins, {})[0]!.status).to.equal('good')
    for (const [ui, difference] of [
      [{ resourceUri: 'ui://a/2' }, 'ui.resourceUri: "ui://a/1" → "ui://a/2"'],
      [{ resourceUri: 'ui://a/1', visibility: ['app'] }, 'ui.visibility: ["model","app"] → ["app"]'],
      [undefined, 'ui: gone: {"resourceUri":"ui://a/1","visibility":["model","app"]}'],
    ] as const) {
      const [tool] = assessTools([listed(ui)], pins, {})
      expect([tool!.status, tool!.difference]).to.deep.equal(['changed', [difference]])
      expect(tool!.approved?.ui?.resourceUri).to.equal('ui://a/1')
    }
  })

  it('is the page of its address, of its type, and not too large', () => {
    const uri = 'ui://a'
    const read = (content: unknown) => readApp('s', uri, { contents: [content] })
    const good = { uri, mimeType: APP_TYPE, text: '<p>ü</p>' }
    expect(read(good)).to.deep.equal({ uri, html: '<p>ü</p>' })
    const blob = Buffer.from('<p>ü</p>').toString('base64')
    expect(read({ uri, mimeType: 'text/html; profile=mcp-app', blob })).to.deep.equal({ uri, html: '<p>ü</p>' })
    expect(read({ ...good, text: 'x'.repeat(MAX_APP) }).html).to.have.length(MAX_APP)
    const refused = [
      { ...good, uri: 'file:///etc/passwd' },
      { ...good, uri: 'ui://b' },
      { ...good, uri: undefined },
      { ...good, mimeType: 'text/html' },
      { ...good, mimeType: 'text/html;profile=mcp-app;x' },
      { ...good, mimeType: [APP_TYPE] },
      { ...good, text: 1 },
      { ...good, text: undefined },
      { ...good, text: 'x'.repeat(MAX_APP + 1) },
      null,
      'x',
    ]
    for (const content of refused) expect(() => read(content), JSON.stringify(content).slice(0, 80)).to.throw(/^s: its? /)
    for (const result of [undefined, null, [], {}, { contents: {} }, { contents: [] }])
      expect(() => readApp('s', uri, result)).to.throw(/does not answer with the app/)
  })
})
