import { resolve } from 'node:path'
import {
  allSettings,
  configuredServers,
  joinedValues,
  ownSettings,
  otherPortOf,
  settingOf,
  valuesBeyond,
  valuesIn,
} from '@svc/runtime/isolation'
import { expect } from 'chai'

const hostsOf = (value: unknown) =>
  valuesIn({ network: ['<tools.x.url>'] }, allSettings({ tools: { x: { url: value } } })).network ?? []

describe('values of permissions', () => {
  it('take host and port of a URL, with the usual port of its scheme, and nothing else', () => {
    const samples: [value: string, ...hosts: string[]][] = [
      ['db.internal:5432', 'db.internal:5432'],
      ['db.internal', 'db.internal'],
      ['postgres://db.internal/shop', 'db.internal:5432'],
      ['postgresql://me:p@ss@db.internal:6000/shop?sslmode=require', 'db.internal:6000'],
      ['postgres://a:1,b:2,c/shop', 'a:1', 'b:2', 'c:5432'],
      ['jdbc:postgresql://db.internal/shop', 'db.internal:5432'],
      ['HTTPS://api.example.com/v1', 'api.example.com:443'],
      ['rediss://:pw@[fd00::1]', '[fd00::1]:6379'],
      ['redis://[fd00::1]:7000/0', '[fd00::1]:7000'],
      ['mongodb+srv://cluster.example.com/x', 'cluster.example.com'],
      ['custom://host.example', 'host.example'],
      ['10.0.0.7:5432', '10.0.0.7:5432'],
      ['fd00::1', 'fd00::1'],
      ['*.example.com', '*.example.com'],
    ]
    for (const [value, ...hosts] of samples) expect(hostsOf(value), value).to.deep.equal(hosts.sort())
  })

  it('are none for text that is no host, so that no part of a password is shown or allowed', () => {
    const odd = [
      '',
      'host=db password=x',
      'me:secret@db:5432',
      'postgres://me:se/cret@db/x',
      'postgres:///x',
      'a b',
      'a\u001b[2J',
      'a\nb',
      '://x',
    ]
    for (const value of [...odd, 5432, true, null, {}, undefined, [['a']]])
      expect(hostsOf(value), JSON.stringify(value)).to.deep.equal([])
  })

  it('come from the own section of the plugin, and from its own instances', () => {
    const permissions = { env: ['<tools.x.key>', '<tools.y.key>', '<providers[].key_env>', 'PLAIN'], write: ['<tools.x.folder>'] }
    expect(valuesIn(permissions, ownSettings({ section: 'tools.x', value: { key: 'A', folder: 'notes' } }))).to.deep.equal({
      env: ['A'],
      write: [resolve('notes')],
    })
    expect(valuesIn(permissions, ownSettings({ section: 'providers', value: { key_env: 'B' } }))).to.deep.equal({ env: ['B'] })
    expect(valuesIn(permissions, ownSettings(undefined))).to.deep.equal({})
    const tree = { providers: { a: { type: 'x', key_env: 'A' }, x: { key_env: 'X' }, b: { type: 'y', key_env: 'Y' } } }
    expect(valuesIn(permissions, allSettings(tree, 'x'))).to.deep.equal({ env: ['A', 'X'] })
    expect(valuesIn({ env: ['<__proto__.x>', '<constructor.name>'] }, allSettings({}))).to.deep.equal({})
  })

  it('are compared by kind', () => {
    const now = { network: ['a:1', 'b:2'], env: ['a:1'] }
    expect(valuesBeyond(now, { network: ['a:1'] })).to.deep.equal({ network: ['b:2'], env: ['a:1'] })
    expect(valuesBeyond(now, now)).to.deep.equal({})
    expect(joinedValues(now, { env: ['z'], read: ['/x'] })).to.deep.equal({
      network: ['a:1', 'b:2'],
      env: ['a:1', 'z'],
      read: ['/x'],
    })
  })
})

describe('servers in the configuration of a plugin', () => {
  const value = {
    server: '127.0.0.1:5432',
    replicas: ['a.internal:1', { not: 'b.internal:2' }],
    api: { url: 'https://me:s3cret@api.example.org/v1' },
    odd: 'pass://wor d',
    word: 'shop',
    port: 5432,
  }

  it('are its URLs and its texts with host and port, with their settings', () => {
    const own = { section: 'tools.x', value }
    expect(configuredServers(own).map(({ host, setting }) => `${setting} ${host}`)).to.deep.equal([
      'tools.x.server 127.0.0.1:5432',
      'tools.x.replicas a.internal:1',
      'tools.x.api.url api.example.org:443',
    ])
    expect(configuredServers({ instances: 'providers', value: { base_url: 'http://h' } })).to.deep.equal([
      { host: 'h:80', setting: 'providers[].base_url' },
    ])
    for (const none of [undefined, null, 1, 'x:1', []])
      expect(configuredServers({ section: undefined, value: none })).to.deep.equal([])
  })

  it('name the setting of a host, with and without its port', () => {
    const own = { section: 'tools.x', value }
    for (const [host, setting] of [
      ['127.0.0.1:5432', 'tools.x.server'],
      ['api.example.org', 'tools.x.api.url'],
      ['a.internal:1', 'tools.x.replicas'],
      ['shop:5432', 'tools.x.word'],
      ['other.internal:1', undefined],
    ] as const)
      expect(settingOf(host, own)).to.equal(setting)
    expect(settingOf('x:1', { value: undefined })).to.equal(undefined)
    const both = { section: 'tools.x', value: { server: 'db.internal:5432', audit: 'db.internal:6432' } }
    expect(settingOf('db.internal:6432', both)).to.equal('tools.x.audit')
  })

  it('name the setting of the same host at another port, unless a setting has exactly this address', () => {
    const own = { section: 'tools.x', value: { ...value, audit: '127.0.0.1:6432' } }
    expect(otherPortOf('127.0.0.1:5433', own)).to.deep.equal({ setting: 'tools.x.server', host: '127.0.0.1:5432' })
    expect(otherPortOf('api.example.org:8443', own)?.host).to.equal('api.example.org:443')
    for (const place of ['127.0.0.1:5432', '127.0.0.1:6432', 'shop:5432', 'other.internal:1', 'api.example.org'])
      expect(otherPortOf(place, own), place).to.equal(undefined)
  })
})
