import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { allowedRequest, createBridge, createRequests, type FrameState, type PageRequest } from '../page/src/bridge.ts'

const RIGHTS = ['GET /notes', 'DELETE /notes/*', 'GET /api/v1/tokens', 'POST /*']
const codeOf = (params: object) => {
  try {
    return allowedRequest(params as Record<string, unknown>, RIGHTS)
  } catch (error) {
    return (error as { readonly code: string }).code
  }
}

function open() {
  const posted: Record<string, unknown>[] = []
  const states: FrameState[] = []
  const asked: PageRequest[] = []
  let kept: unknown
  const answering = Promise.withResolvers<void>()
  const request = async (one: PageRequest) => {
    asked.push(one)
    await answering.promise
    return { status: 200, body: {} }
  }
  const bridge = createBridge({
    methods: createRequests({ rights: RIGHTS, request }),
    context: () => ({ theme: 'dark', locale: 'en' }),
    kept: { get: () => kept, set: value => void (kept = value) },
    post: message => void posted.push(message as Record<string, unknown>),
    onState: state => void states.push(state),
  })
  return { bridge, posted, states, asked, answer: answering.resolve, [Symbol.dispose]: () => bridge.close() }
}
const call = (id: unknown, method: unknown, params?: unknown) => ({ jsonrpc: '2.0', id, method, params })

describe('the bridge of a page of a plugin', () => {
  it('passes on what the manifest lists, and nothing else, however it is written', () => {
    expect(codeOf({ method: 'GET', path: '/notes', query: { q: 'a b', n: 1 } })).to.deep.equal({
      method: 'GET',
      path: '/notes?q=a+b&n=1',
    })
    expect(codeOf({ method: 'DELETE', path: '/notes/1' })).to.deep.equal({ method: 'DELETE', path: '/notes/1' })
    expect(codeOf({ method: 'POST', path: '/other', body: { a: 1 } })).to.deep.equal({
      method: 'POST',
      path: '/other',
      body: '{"a":1}',
    })
    for (const path of ['/note', '/notes/', '/notes/1', '/api/v1/tokens', '/api/v1/tokens/x', '/%6eotes'])
      expect(codeOf({ method: 'GET', path }), path).to.equal('FORBIDDEN')
    for (const path of [
      '/api/v1/tokens',
      '/API/v1/Tokens',
      '/api/v1/%74okens',
      '/api/v1/plugins/plans/x/apply',
      '/api/v1/console/session',
      '/console/x',
    ])
      expect(codeOf({ method: 'POST', path }), path).to.equal('FORBIDDEN')
    for (const path of [
      '/notes/../x',
      '/notes/./x',
      '/a//b',
      '//host/x',
      '/a%2fb',
      '/a%2E%2e/b',
      '/a\\b',
      '/a?b',
      '/a#b',
      '/a b',
      'a',
      '',
      '/%zz',
      '/a%00',
      'http://host/notes',
      1,
      null,
      ['/notes'],
    ])
      expect(codeOf({ method: 'POST', path }), String(path)).to.equal('INVALID_VALUE')
    for (const method of ['get', 'HEAD', 'TRACE', 'CONNECT', '', 1, undefined])
      expect(codeOf({ method, path: '/notes' }), String(method)).to.equal('INVALID_VALUE')
    expect(codeOf({ method: 'GET', path: '/notes', body: {} })).to.equal('INVALID_VALUE')
    expect(codeOf({ method: 'GET', path: '/notes', query: { a: {} } })).to.equal('INVALID_VALUE')
  })

  it('keeps what the page wants back when it is loaded again, within the limits of a message', async () => {
    using page = open()
    const { bridge, posted, states } = page
    bridge.take(call(1, 'ui/initialize', {}))
    bridge.take({ jsonrpc: '2.0', method: 'svc/keep', params: { value: { draft: 'x' } } })
    bridge.take(call(2, 'ui/initialize', {}))
    await nextTurn()
    expect(posted.find(({ id }) => id === 1)).to.have.nested.property('result.hostContext.kept', null)
    expect(posted.find(({ id }) => id === 2))
      .to.have.nested.property('result.hostContext.kept')
      .that.deep.equals({ draft: 'x' })
    bridge.take({ jsonrpc: '2.0', method: 'svc/keep', params: { value: 'x'.repeat(300_000) } })
    expect(states.at(-1)).to.have.property('state', 'stopped')
  })

  it('stops a page for the reason of the console, and takes nothing more of it', async () => {
    using page = open()
    const { bridge, asked, states } = page
    bridge.stop('It took the keyboard focus.')
    bridge.take(call(1, 'svc/request', { method: 'GET', path: '/notes' }))
    await nextTurn()
    expect(states).to.deep.equal([{ state: 'stopped', reason: 'It took the keyboard focus.' }])
    expect(asked).to.deep.equal([])
  })

  it('answers calls of its methods, ignores other forms, and says when the page has started', async () => {
    using page = open()
    const { bridge, posted, states } = page
    for (const odd of [
      null,
      1,
      'x',
      [],
      {},
      { jsonrpc: '1.0', id: 1, method: 'ping' },
      call({}, 'ping'),
      call(1, ['ping']),
      call(1.5, 'ping'),
    ])
      bridge.take(odd)
    expect([posted, states]).to.deep.equal([[], []])
    bridge.take(call(1, 'ui/initialize', {}))
    bridge.take({ jsonrpc: '2.0', method: 'ui/notifications/initialized' })
    for (const method of ['tools/call', 'constructor', '__proto__', 'toString']) bridge.take(call(method, method))
    await nextTurn()
    expect(posted.find(({ id }) => id === 1)).to.have.nested.property('result.hostContext.theme', 'dark')
    expect(posted.filter(({ error }) => (error as { code?: number } | undefined)?.code === -32601).length).to.equal(4)
    expect(states).to.deep.equal([{ state: 'running' }])
  })

  for (const [what, message] of [
    ['a long text', call(1, 'ping', { text: 'x'.repeat(300_000) })],
    ['many values', call(1, 'ping', { list: Array.from({ length: 20_000 }, () => 0) })],
    [
      'a deep value',
      call(
        1,
        'ping',
        Array.from({ length: 40 }).reduce<object>(value => ({ value }), {})
      ),
    ],
    ['a map', call(1, 'ping', new Map())],
    ['a big number', call(1, 'ping', { big: 1n })],
  ] as const)
    it(`stops a page that sends ${what}`, () => {
      using page = open()
      page.bridge.take(message)
      expect(page.states).to.deep.equal([{ state: 'stopped', reason: 'It sent a message that is too large.' }])
      page.bridge.take(call(2, 'ping'))
      expect(page.posted).to.deep.equal([])
    })

  it('stops a page that sends messages without end, or shows another document', () => {
    using flood = open()
    for (let count = 0; count < 1_000; count++) flood.bridge.take(call(count, 'nothing'))
    expect(flood.states).to.deep.equal([{ state: 'stopped', reason: 'It sent too many messages.' }])
    using left = open()
    left.bridge.loaded()
    expect(left.states).to.deep.equal([])
    left.bridge.loaded()
    expect(left.states[0]).to.include({ state: 'stopped' })
  })

  it('runs eight requests at once', async () => {
    using page = open()
    for (let id = 0; id < 30; id++) page.bridge.take(call(id, 'svc/request', { method: 'GET', path: '/notes' }))
    await nextTurn()
    expect(page.asked.length).to.equal(8)
    const codes = page.posted.map(({ error }) => (error as { data?: { code: string } } | undefined)?.data?.code)
    expect(codes.filter(code => code === 'RATE_LIMITED').length).to.equal(22)
    page.answer()
    await nextTurn()
    page.bridge.take(call(30, 'svc/request', { method: 'GET', path: '/notes' }))
    expect(page.asked.length).to.equal(9)
  })
})
