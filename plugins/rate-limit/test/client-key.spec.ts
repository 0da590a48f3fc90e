import { expect } from 'chai'
import { clientKey, networkOf } from '../src/client-key.ts'

const NETWORKS: Readonly<Record<string, string>> = {
  '192.0.2.1': '192.0.2.1',
  '::ffff:192.0.2.1': '192.0.2.1',
  '::FFFF:c000:0201': '192.0.2.1',
  '0:0:0:0:0:ffff:192.0.2.1': '192.0.2.1',
  '::': '0:0:0:0::/64',
  '::1': '0:0:0:0::/64',
  '::192.0.2.1': '0:0:0:0::/64',
  '64:ff9b::192.0.2.1': '64:ff9b:0:0::/64',
  '2001:db8::1': '2001:db8:0:0::/64',
  '2001:DB8:0:0:1:2:3:4': '2001:db8:0:0::/64',
  '2001:db8:0:1::': '2001:db8:0:1::/64',
  '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
  '2001:0db8:0001:0002::6': '2001:db8:1:2::/64',
  '2001:db8:1:2:3:4:192.0.2.1': '2001:db8:1:2::/64',
  '1::2:3:4:5:6:7': '1:0:2:3::/64',
  '::2:3:4:5:6:7': '0:0:2:3::/64',
  '::2:3:4:5:6:7:8': '0:2:3:4::/64',
  '1:2:3:4:5:6:7::': '1:2:3:4::/64',
  'fe80::1%eth0': 'fe80:0:0:0::/64',
}

describe('the client that a request is counted for', () => {
  it('is an IPv4 address or an IPv6 /64, however it is written', () => {
    for (const [address, network] of Object.entries(NETWORKS)) expect(networkOf(address), address).to.equal(network)
  })

  it('is one and the same for all that is no address', () => {
    for (const address of [undefined, '', 'unknown', '192.0.2', '192.0.2.1:80', '[::1]', '::g', '%eth0', '_hidden'])
      expect(networkOf(address), address).to.equal('none')
  })

  it('keeps the id of a principal apart from an address, and what no store can hold as a digest', () => {
    const keyOf = (id: string) => clientKey({ id, scopes: [] }, 'principal')
    expect(keyOf('ann')).to.equal('rate_limit/principal/ann')
    const odd = ['x'.repeat(2000), 'x'.repeat(2001), 'a\0b', 'a\ud800', 'a\ud801', keyOf('a\0b').split('/')[2]!].map(keyOf)
    expect(new Set(odd).size).to.equal(odd.length)
    for (const key of odd) expect(key).to.match(/^rate_limit\/principal\/~[\w-]{43}$/)
  })
})
