import { expect } from 'chai'
import { call, serve } from './support/client.ts'
import { who } from './support/who.ts'

const asks = async (url: string, headers: Record<string, string> = {}) => (await call(`${url}/who`, { headers })).body.address
const forwarded = (value: string) => ({ 'x-forwarded-for': value })

describe('the address of a client', () => {
  it('is that of its connection, whatever forwarding headers say, while no proxy is trusted', async () => {
    await using server = await serve({ who })
    expect(await asks(server.url)).to.equal('127.0.0.1')
    const forged = { ...forwarded('203.0.113.7'), forwarded: 'for=203.0.113.7', 'x-real-ip': '203.0.113.7' }
    expect(await asks(server.url, forged)).to.equal('127.0.0.1')
  })

  it('is not taken from a connection that is no trusted proxy', async () => {
    await using server = await serve({ who }, { trusted_proxies: ['10.0.0.0/8'] })
    expect(await asks(server.url, forwarded('203.0.113.7'))).to.equal('127.0.0.1')
  })

  describe('behind trusted proxies', () => {
    let server: Awaited<ReturnType<typeof serve>>
    before(async () => {
      server = await serve({ who }, { trusted_proxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8', '2001:db8::5'] })
    })
    after(() => server.host.close())

    const cases: Readonly<Record<string, readonly [string, string]>> = {
      'is the hop that the proxy names': ['203.0.113.7', '203.0.113.7'],
      'is the rightmost hop that is no proxy of ours: what stands left of it may be forged': [
        '1.1.1.1, 203.0.113.7, 10.1.2.3, fd00::1',
        '203.0.113.7',
      ],
      'may be of IPv6': ['2001:db8::1', '2001:db8::1'],
      'may stand in brackets, with a port': ['[2001:db8::1]:443, 10.1.2.3:8080', '2001:db8::1'],
      'is the last of our proxies where only these are named': ['10.9.9.9, fd00::1, 2001:db8::5', '10.9.9.9'],
      'ends at what is no address': ['203.0.113.7, nonsense', '127.0.0.1'],
      'ends at an empty hop': ['203.0.113.7,, 10.0.0.1', '10.0.0.1'],
      'is of IPv4 where it is written as IPv6': ['::ffff:203.0.113.7', '203.0.113.7'],
    }
    for (const [title, [header, address]] of Object.entries(cases))
      it(title, async () => expect(await asks(server.url, forwarded(header))).to.equal(address))

    it('is that of the proxy where it forwards nothing', async () => expect(await asks(server.url)).to.equal('127.0.0.1'))
  })

  for (const entry of ['proxy.example', '10.0.0.0/33', '10.0.0.0/8/8', '10.0.0.0/', 'fd00::/129', ''])
    it(`fails the start where server.trusted_proxies names "${entry}"`, async () => {
      const failed = await serve({}, { trusted_proxies: [entry] }).catch((error: unknown) => error)
      const [problem] = (failed as { problems: { code: string; details: object; hint: string }[] }).problems
      if (entry === '') return expect(problem!.code).to.equal('CONFIG_INVALID')
      expect(problem!.code).to.equal('PROXY_INVALID')
      return expect(problem!.hint).to.include('10.0.0.0/8')
    })
})
