import { expect } from 'chai'
import { createGuardedResolve, createNamedServer } from '@svc/safe-fetch'
import { get, refusal, upstream } from './support/upstream.ts'

const NEVER = { resolve: () => Promise.reject(new Error('nobody asked')) }
const codeOf = async (url: string, options: Parameters<typeof get>[1] = {}) =>
  (await refusal(get(url, { allow: [], ...NEVER, ...options }))).code

describe('where a guarded fetch goes', () => {
  it('refuses every form of an address that is local, private, reserved or a cloud’s metadata', async () => {
    const v4 =
      '127.0.0.1 127.9.9.9 0.0.0.0 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 100.100.100.200 168.63.129.16 192.0.0.192 ' +
      '192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255 192.88.99.1'
    const inOtherWords = '2130706433 0x7f000001 0177.0.0.1 0x7f.1 127.1 127.0.0.1. １２７.0.0.1 %31%32%37.0.0.1'
    const v6 =
      '[::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:169.254.169.254] [::127.0.0.1] [0:0:0:0:0:0:0:1] [64:ff9b::7f00:1] [64:ff9b:1::1] [2002:7f00:1::] ' +
      '[2001::1] [2001:db8::1] [fe80::1] [fec0::1] [fc00::1] [fd00:ec2::254] [ff02::1] [100::1] [3fff::1] [5f00::1] [4000::1]'
    const hosts = `${v4} ${inOtherWords} ${v6}`.split(' ')
    for (const host of hosts) expect(await codeOf(`http://${host}/`), host).to.equal('ADDRESS_FORBIDDEN')
  })

  it('refuses names that lead there, whatever the name is', async () => {
    for (const address of ['127.0.0.1', '::1', '::ffff:10.0.0.1', '169.254.169.254', 'fe80::1%eth0', 'nonsense', ''])
      expect(await codeOf('http://pretty.example/', { resolve: async () => [address] }), address).to.equal('ADDRESS_FORBIDDEN')
    expect(await codeOf('http://localhost:1/', { resolve: undefined })).to.equal('ADDRESS_FORBIDDEN')
  })

  it('does not tell what a name leads to', async () => {
    const { message, details } = await refusal(get('http://inner.example/a?key=1', { resolve: async () => ['10.1.2.3'] }))
    expect(`${message}${JSON.stringify(details)}`).to.not.match(/10\.1|key/)
    expect(details).to.deep.equal({ host: 'inner.example' })
  })

  it('refuses what is no http, holds a password or asks for another port', async () => {
    const urls = [
      'ftp://a.example',
      'file:///etc/passwd',
      'javascript:1',
      'data:,1',
      'http://',
      'no url',
      '',
      'http://u:p@a.example',
      'http://u@a.example',
    ]
    for (const url of [...urls, 'http://[::1', 'http://256.1.1.1/', 'http://a.example:65536'])
      expect(await codeOf(url), url).to.equal('URL_INVALID')
    expect(await codeOf('http://8.8.8.8:25/', { ports: [80, 443] })).to.equal('URL_INVALID')
  })

  it('goes where the operator allows: an address, a network, a name, all names below one', async () => {
    await using server = await upstream((_, response) => response.end('inside'))
    const at = (host: string) => `http://${host}:${server.port}/`
    const resolve = async () => ['127.0.0.1']
    for (const allow of ['127.0.0.1', '127.0.0.0/8', '::/0', 'inner.example', '*.example'])
      expect((await get(at('inner.example'), { allow: [allow], resolve })).text, allow).to.equal('inside')
    for (const allow of ['127.0.0.2', '126.0.0.0/8', 'ner.example', 'example', '*.inner.example', '2000::/3'])
      expect(await codeOf(at('inner.example'), { allow: [allow], resolve }), allow).to.equal('ADDRESS_FORBIDDEN')
    expect((await get(at('INNER.example.'), { allow: ['Inner.Example'], resolve })).text).to.equal('inside')
  })

  it('refuses an allow list that cannot be meant', async () => {
    for (const allow of ['10.0.0.0/33', '10.0.0/8', '10.0.0.0/', 'http://a.example', '::/129', 'a b', '', '10.0.0.0/-1'])
      expect(await codeOf('http://8.8.8.8/', { allow: [allow] }), allow).to.equal('CONFIG_INVALID')
  })

  it('connects to the address that it checked, though the name leads elsewhere the next time', async () => {
    await using server = await upstream((_, response) => response.end('who asks?'))
    const answers = [['127.0.0.1'], ['10.0.0.1']]
    let questions = 0
    const resolve = async () => answers[questions++ % 2]!
    const { text } = await get(`http://rebinding.example:${server.port}/`, { resolve })
    expect({ text, questions }).to.deep.equal({ text: 'who asks?', questions: 1 })
    // the other way round: a public answer first, and then the loopback
    const [public_, local] = [['203.0.113.1'], ['127.0.0.1']]
    const turns = [public_, local]
    expect(await codeOf(`http://rebinding.example:${server.port}/`, { resolve: async () => turns.shift()! })).to.equal(
      'ADDRESS_FORBIDDEN'
    )
    expect(server.asked).to.have.length(1)
  })

  it('uses only those of several addresses that may be reached', async () => {
    await using server = await upstream((_, response) => response.end('reached'))
    const resolve = async () => ['10.0.0.1', '127.0.0.1', '::1']
    expect((await get(`http://many.example:${server.port}/`, { resolve })).text).to.equal('reached')
  })

  it('keeps the name in Host', async () => {
    await using server = await upstream((_, response) => response.end())
    await get(`http://named.example:${server.port}/`, { resolve: async () => ['127.0.0.1'] })
    expect(server.asked[0]!.headers.host).to.equal(`named.example:${server.port}`)
  })

  it('says that a name leads nowhere, also where the name server is silent', async () => {
    expect(await codeOf('http://nowhere.example/', { resolve: async () => [] })).to.equal('HOST_UNKNOWN')
    const unknown = () => Promise.reject(Object.assign(new Error('getaddrinfo'), { code: 'ENOTFOUND' }))
    expect(await codeOf('http://nowhere.example/', { resolve: unknown })).to.equal('HOST_UNKNOWN')
    expect(await codeOf('http://silent.example/', { resolve: () => new Promise(() => {}), dnsMs: 20 })).to.equal('HOST_UNKNOWN')
  })
})

describe('a server that the operator has named', () => {
  const server = (url: string, ...answers: string[][]) => {
    const named = createNamedServer(url)
    return { named, find: createGuardedResolve(named.guard, 1_000, async () => answers.shift()!) }
  }

  it('is reached where it lies, at its own port, and nowhere else in the name of others', async () => {
    const { named, find } = server('http://tools.internal:9000/mcp', ['10.0.0.7'])
    expect(await find('tools.internal', 9000)).to.deep.equal(['10.0.0.7'])
    expect(named.permits('tools.internal', '10.0.0.7', 9000)).to.equal(true)
    for (const [host, address, port] of [
      ['tools.internal', '10.0.0.8', 9000],
      ['tools.internal', '10.0.0.7', 6379],
      ['other.internal', '10.0.0.7', 9000],
    ] as const)
      expect(named.permits(host, address, port), `${host} ${address} ${port}`).to.equal(false)
  })

  it('that was public is not followed inward, and none to the credentials of a cloud', async () => {
    const { find } = server('https://tools.example/mcp', ['8.8.8.8'], ['127.0.0.1'], ['8.8.4.4'])
    expect(await find('tools.example', 443)).to.deep.equal(['8.8.8.8'])
    expect((await refusal(find('tools.example', 443))).code).to.equal('ADDRESS_FORBIDDEN')
    expect(await find('tools.example', 443)).to.deep.equal(['8.8.4.4'])
    const inner = server('http://tools.internal/mcp', ['169.254.169.254'])
    expect((await refusal(inner.find('tools.internal', 80))).code).to.equal('ADDRESS_FORBIDDEN')
  })
})
