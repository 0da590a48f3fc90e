import { schema } from '@svc/core'
import type { PluginSet } from '@svc/core/contracts'
import { expect } from 'chai'
import { createPluginRoutes } from '../src/routes/plugins.ts'

const unused = {} as PluginSet // only the schema of the body is read
const { plugin_plan: route } = createPluginRoutes(unused, () => {})
const body = schema(route!.body!)
const problems = (value: unknown) => body.check(value).map(({ path, message }) => `${path} ${message}`)

describe('the body of a plan of plugins', () => {
  it('takes names of the registry, with a version or range', () => {
    for (const name of ['svc-plugin-weather', '@me/svc-plugin-weather', 'a', 'a.b_c'])
      for (const version of [undefined, '1.0.0', '^1.2', '>=1 <2', '1.x || 2.x', 'latest'])
        expect(problems({ action: 'install', name, ...(version ? { version } : {}) }), `${name} ${version}`).to.deep.equal([])
  })

  it('takes no path, address, link or tarball', () => {
    const names = [
      './a',
      '../a',
      '/a',
      '~/a',
      'a/b',
      '@a',
      '@a/',
      '@a/b/c',
      'a.tgz',
      'a.tar.gz',
      'file:a',
      'link:a',
      'npm:a',
      '',
      ' a',
    ]
    for (const name of [
      ...names,
      'git+https://a.example/b',
      'https://a.example/b',
      'github:a/b',
      'A',
      'a\n',
      'a@1',
      'x'.repeat(215),
    ])
      expect(problems({ action: 'install', name }), JSON.stringify(name)).to.not.deep.equal([])
    for (const version of ['', ' ', 'file:..', 'git+ssh://a', '../..', '1;2', '$(a)', '1\n2', 'x'.repeat(101)])
      expect(problems({ action: 'install', name: 'a', version }), JSON.stringify(version)).to.not.deep.equal([])
  })

  it('is closed, and its types are checked', () => {
    const good = { action: 'install', name: 'a' }
    for (const bad of [{}, [], null, 'a', { name: 'a' }, { ...good, trust: true }, { ...good, scripts: true }])
      expect(problems(bad), JSON.stringify(bad)).to.not.deep.equal([])
    for (const action of ['link', 'accept', 'pack', 'Install', '', 1, null])
      expect(problems({ ...good, action }), JSON.stringify(action)).to.not.deep.equal([])
  })
})
