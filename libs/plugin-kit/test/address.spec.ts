import { expect } from 'chai'
import { networkOf } from '@svc/plugin-kit'

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

describe('what one client has of the network', () => {
  it('is an IPv4 address or an IPv6 /64, however it is written', () => {
    for (const [address, network] of Object.entries(NETWORKS)) expect(networkOf(address), address).to.equal(network)
  })

  it('is one and the same for all that is no address', () => {
    for (const address of [undefined, '', 'unknown', '192.0.2', '192.0.2.1:80', '[::1]', '::g', '%eth0', '_hidden'])
      expect(networkOf(address), address).to.equal('none')
  })
})
