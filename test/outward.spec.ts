import { expect } from 'chai'
import { blanked, filesBelow, textOf } from './support/source.ts'

/** A way out of the process: the global fetch, undici, or a socket of Node. Types are none, and neither is what a guarded fetch is asked by its name. */
const WAYS = /(^|[^.\w'])fetch\(|'undici[\w/.]*'|'node:(https?|http2|net|tls|dgram)'/
const NONE = /^\s*import type |\b(function|async) fetch\(|^\s*fetch\(url: string, use|\bisIP|\bBlockList\b|STATUS_CODES/

/** Who may have one, and why. All else asks `@svc/safe-fetch`: what goes out on a user's word goes through it. */
const MAY = [
  /^libs\/safe-fetch\//, // that is it
  /^libs\/provider-http\/|^plugins\/providers\/ai-sdk\/src\/fetch\.ts/, // to the address of a provider's entry
  /^core\/runtime\//, // between processes of this machine
  /^plugins\/api\/http\/|^libs\/mcp-protocol\/src\/oauth\/login\.ts/, // servers
  /^plugins\/sandbox\/isolation\/src\/egress\.ts/, // the way out of isolated plugins, which looks at each address
  /^plugins\/api\/(auth-oidc\/src\/keys|console\/src\/oidc-client)\.ts/, // to the issuer of the configuration
  /^(libs\/mcp-protocol\/src\/oauth\/|plugins\/mcp\/client\/src\/ownership\/connection-test\.ts)/, // by the fetch that they are given; whether a configured server listens
  /^plugins\/sandbox\/quickjs\/src\/requests\.ts/, // calls its own fetch, which is guarded
  /^plugins\/storage\/sqlite\/src\/restore\.ts/, // brings a file
  /^plugins\/api\/console\/page\//, // runs in browsers, whose policy allows its own server only
  /^(cli|plugins\/admin\/plugin-manager\/src\/commands\/server)\//, // to the server that a person names
]

describe('modules that open outgoing connections', () => {
  const found = ['core', 'libs', 'plugins', 'cli']
    .flatMap(folder => filesBelow(folder, /\.m?ts$/))
    .filter(file => !/\/(test|testing|dist)\//.test(file))
    .flatMap(file =>
      blanked(textOf(file), 'strings')
        .split('\n')
        .flatMap((line, at) => (WAYS.test(line) && !NONE.test(line) ? [`${file}:${at + 1} ${line.trim()}`] : []))
    )

  it('are those in the list; all other code uses @svc/safe-fetch', () => {
    expect(found.filter(place => !MAY.some(item => item.test(place)))).to.deep.equal([])
  })

  it('are found by the scan', () => {
    for (const item of MAY.slice(0, 5))
      expect(
        found.some(place => item.test(place)),
        String(item)
      ).to.equal(true)
  })
})
