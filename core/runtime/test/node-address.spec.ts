import { expect } from 'chai'
import { addressFact, addressIn } from '../supervisor/node-address.ts'

describe('the address of another node', () => {
  it('has the name of the machine in its URL if the node listens on all networks', () => {
    const urlOf = (host: string, scheme: 'http' | 'https' = 'http') =>
      addressIn(addressFact({ host, port: 9411, scheme }), 'machine-1')?.url
    expect(urlOf('127.0.0.1')).to.equal('http://127.0.0.1:9411')
    expect(urlOf('0.0.0.0', 'https')).to.equal('https://machine-1:9411')
    expect(urlOf('::')).to.equal('http://machine-1:9411')
    expect(urlOf('fd00::7')).to.equal('http://[fd00::7]:9411')
    expect(urlOf('node-1.example')).to.equal('http://node-1.example:9411')
  })

  it('is left out if it is missing or is none', () => {
    const good = { host: '10.0.0.1', port: 9411, scheme: 'http' }
    expect(addressIn(good, 'machine-1')).to.not.equal(undefined)
    const bad: readonly unknown[] = [
      undefined,
      null,
      'http://10.0.0.1:9411',
      [good],
      ...['a@b', 'a/b', 'a b', '', '\u001b[2J', 'x'.repeat(254), 7].map(host => ({ ...good, host })),
      ...[0, 65_536, 1.5, Number.NaN, '9411'].map(port => ({ ...good, port })),
      ...['javascript', 'file', 'http://evil', undefined].map(scheme => ({ ...good, scheme })),
    ]
    for (const sent of bad) expect(addressIn(sent, 'machine-1'), JSON.stringify(sent)).to.equal(undefined)
    expect(addressIn({ ...good, host: '0.0.0.0' }, 'evil.example/@')).to.equal(undefined)
    expect(addressIn({ ...good, host: '0.0.0.0' }, undefined)).to.equal(undefined)
  })
})
